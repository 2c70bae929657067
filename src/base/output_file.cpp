// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file_write.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

bool is_same(const fs::path& one, const fs::path& other) {
    std::error_code error;
    return fs::equivalent(one, other, error) && !error;
}

// No verb reads a page, so a page may be written into the folder that it shows.
bool is_page(const fs::path& path) { return path.extension() == ".html"; }

bool is_input(const fs::path& output, const fs::path& input) {
    if (is_same(output, input)) return true;
    std::error_code error;
    if (!fs::is_directory(input, error) || is_page(output)) return false;
    auto options = fs::directory_options::skip_permission_denied;
    for (auto entry = fs::recursive_directory_iterator(input, options, error);
         !error && entry != fs::recursive_directory_iterator(); entry.increment(error))
        if (is_same(output, entry->path())) return true;
    return false;
}

// The output must not be readable by anyone who cannot read an input.
unsigned mode_for(const std::vector<fs::path>& inputs) {
    unsigned mode = 0666;
    for (const fs::path& input : inputs) {
        struct stat status {};
        if (::stat(input.c_str(), &status) == 0) mode &= status.st_mode | 0600;
    }
    return mode;
}

}  // namespace

OutputFile::OutputFile(fs::path path, const OutputRule& rule)
    : path_(std::move(path)), mode_(mode_for(rule.inputs)), force_(rule.force) {
    if (is_stdout()) return;
    struct stat status {};
    if (::stat(path_.c_str(), &status) != 0) return;  // a wrong path is reported by the write
    if (S_ISDIR(status.st_mode)) {
        throw UserError({.where = {path_.string()},
                         .found = "the output is a folder",
                         .expected = "the name of a file"});
    }
    for (const fs::path& input : rule.inputs) {
        if (!is_input(path_, input)) continue;
        throw UserError({.where = {path_.string()},
                         .found = "the output is an input",
                         .expected = "another file: inputs are never overwritten",
                         .fix = "name another output"});
    }
    // Devices, pipes and /dev/stdout accept any data.
    if (!S_ISREG(status.st_mode) || rule.force) return;
    throw UserError({.where = {path_.string()},
                     .found = "the output already exists",
                     .expected = "a file that does not exist yet",
                     .fix = "replace it with --force, or choose another with -o"});
}

void OutputFile::write(std::string_view content) const {
    SATURATE_CHECK(!is_stdout(), "standard output is printed to by app/");
    write_file(path_, content, {.mode = mode_, .replaces = force_});
}

fs::path output_folder(const fs::path& path) {
    if (path == "-") {
        throw UserError({.found = "the output is -",
                         .expected = "a folder: standard output cannot hold one",
                         .fix = "-o DIR; a folder of that name is ./-"});
    }
    return path;
}

fs::path keep_backup(const fs::path& file, std::string_view content) {
    fs::path beside = followed(file);
    struct stat status {};
    unsigned mode = ::stat(beside.c_str(), &status) == 0 ? status.st_mode & 0777 : 0600;
    for (int i = 0;; ++i) {
        fs::path path = beside.string() + (i == 0 ? ".bak" : fmt::format(".bak.{}", i));
        std::error_code error;
        if (fs::exists(fs::symlink_status(path, error))) continue;
        write_file(path, content, {.mode = mode, .replaces = false});
        return path;
    }
}

}  // namespace saturate
