// SPDX-License-Identifier: Apache-2.0
#include "process/scratch_tree.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

#include "base/error.h"
#include "project/captured.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

// Mounts, then becomes the command, so that signals and status need no care.
constexpr const char* kMount =
    "mount -t overlay overlay -o "
    "lowerdir=\"$1\",upperdir=\"$2/upper\",workdir=\"$2/work\",userxattr "
    "\"$1\" && cd \"$1\" && shift 2 && exec \"$@\"";

constexpr std::uintmax_t kCopied = 4 << 20;  // larger files are links: they are data

std::vector<std::string> mounted(const fs::path& folder, const fs::path& own,
                                 const std::vector<std::string>& command) {
    std::vector<std::string> out = {
        "unshare", "--user", "--map-root-user", "--mount",   "--", "sh", "-c",
        kMount,    "sh",     folder.string(),   own.string()};
    out.insert(out.end(), command.begin(), command.end());
    return out;
}

fs::path make_own(const fs::path& parent) {
    std::error_code error;
    fs::create_directories(parent, error);
    std::string pattern = (parent / "tree-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) {
        throw MachineError(
            {.where = {parent.string()},
             .found = fmt::format("no folder can be made here: {}", std::strerror(errno)),
             .expected = "a folder for temporary files",
             .fix = "set TMPDIR"});
    }
    fs::create_directories(fs::path(pattern) / "upper");
    fs::create_directories(fs::path(pattern) / "work");
    return pattern;
}

void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
}

// A folder whose commas or colons would be taken for options of the mount.
bool is_plain(const fs::path& path) {
    return path.string().find_first_of(",:\\\"") == std::string::npos;
}

}  // namespace

bool can_overlay() {
    static const bool kCan = [] {
        std::error_code error;
        fs::path own = make_own(fs::temp_directory_path(error));
        fs::create_directories(own / "below");
        Captured tried = run_captured(mounted(own / "below", own, {"true"}), "");
        fs::remove_all(own, error);
        return tried.end == Captured::End::exited && tried.status == 0;
    }();
    return kCan;
}

ScratchTree::ScratchTree(const fs::path& folder, const fs::path& parent,
                         const std::vector<ScratchFile>& edited)
    : folder_(fs::canonical(folder)), own_(make_own(parent)) {
    is_overlay_ = is_plain(folder_) && is_plain(own_) && can_overlay();
    if (!is_overlay_) {
        link_tree(edited);
        return;
    }
    for (const ScratchFile& file : edited) {
        write(own_ / "upper" / file.file, file.text);
        std::error_code error;
        fs::permissions(own_ / "upper" / file.file,
                        fs::status(folder_ / file.file, error).permissions(), error);
    }
}

ScratchTree::~ScratchTree() {
    std::error_code ignored;
    // The overlay's own work folder has no permissions; ours to give.
    fs::permissions(own_ / "work" / "work", fs::perms::owner_all, ignored);
    fs::remove_all(own_, ignored);
}

// Folders are real, so that what is written goes to the tree; small files are copies; large ones
// and special ones are links.
void ScratchTree::link_tree(const std::vector<ScratchFile>& edited) {
    static const std::set<std::string> kLeft = {".git", "saturate-runs", "__pycache__",
                                                "node_modules"};
    fs::path top = own_ / "upper";
    std::error_code error;
    auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator it(folder_, options, error), end; it != end;
         it.increment(error)) {
        if (error) break;
        fs::path to = top / fs::relative(it->path(), folder_);
        bool is_folder = it->is_directory(error) && !it->is_symlink(error);
        if (is_folder &&
            (kLeft.contains(it->path().filename()) || it->path() == own_.parent_path())) {
            it.disable_recursion_pending();
            continue;
        }
        if (is_folder)
            fs::create_directories(to, error);
        else if (it->is_regular_file(error) && it->file_size(error) <= kCopied)
            fs::copy_file(it->path(), to, error);
        else
            fs::create_symlink(
                it->is_symlink(error) ? fs::canonical(it->path(), error) : it->path(), to, error);
        error.clear();
    }
    for (const ScratchFile& file : edited) write(top / file.file, file.text);
}

std::vector<std::string> ScratchTree::command(const std::vector<std::string>& own) const {
    if (is_overlay_) return mounted(folder_, own_, own);
    std::vector<std::string> out = {"sh", "-c", "cd \"$1\" && shift && exec \"$@\"", "sh",
                                    (own_ / "upper").string()};
    out.insert(out.end(), own.begin(), own.end());
    return out;
}

std::string ScratchTree::unguarded() const {
    return is_overlay_ ? ""
                       : "this system allows no overlay: files named by absolute paths and files "
                         "over 4 MiB are not guarded against writing";
}

}  // namespace saturate
