// SPDX-License-Identifier: Apache-2.0
#include "process/run_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

// Removes the folders of a command that ended before it wrote anything.
class Reserved {
  public:
    ~Reserved() {
        if (::getpid() != maker_) return;
        for (const fs::path& folder : folders_) ::rmdir(folder.c_str());  // only if it is empty
        std::error_code error;
        fs::directory_iterator entry(parent_, error), end;
        bool has_none = !parent_.empty() && !error && entry != end &&
                        entry->path().filename() == ".gitignore" && ++entry == end;
        if (has_none) fs::remove_all(parent_, error);
    }
    void add(const fs::path& folder, bool is_parent_ours) {
        std::lock_guard lock(mutex_);
        std::error_code ignored;
        folders_.push_back(fs::absolute(folder, ignored));
        if (is_parent_ours) parent_ = folders_.back().parent_path();
    }

  private:
    std::mutex mutex_;
    std::vector<fs::path> folders_;
    fs::path parent_;  // the runs folder, if we made it; else empty
    pid_t maker_ = ::getpid();
};

Reserved& reserved() {
    static Reserved kReserved;
    return kReserved;
}

[[noreturn]] void throw_no_folder(const fs::path& path, int error) {
    throw UserError({.where = {path.string()},
                     .found = fmt::format("cannot create a folder here: {}", std::strerror(error)),
                     .expected = "a folder that you can write to",
                     .fix = "choose another place with -o DIR"});
}

std::string time_now() {
    std::time_t now = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&now, &local);
    char text[32] = {};
    std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
    return text;
}

}  // namespace

fs::path new_run_folder(std::string_view name) {
    fs::path parent = kRunsFolder;
    bool is_parent_ours = ::mkdir(parent.c_str(), 0777) == 0;
    if (is_parent_ours)
        write_file_whole(parent / ".gitignore", "*\n");
    else if (errno != EEXIST)
        throw_no_folder(parent, errno);
    fs::path base = parent / fmt::format("{}-{}", name, time_now());
    fs::path path = base;
    for (int n = 2; ::mkdir(path.c_str(), 0777) != 0; ++n) {
        if (errno != EEXIST) throw_no_folder(path, errno);
        path = fmt::format("{}-{}", base.string(), n);
    }
    reserved().add(path, is_parent_ours);
    return path;
}

}  // namespace saturate
