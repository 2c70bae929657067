// SPDX-License-Identifier: Apache-2.0
#include "base/cache_folder.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "base/error.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

fs::path variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

// The account's home. Asked only if HOME is not set, because the lookup may ask a server.
fs::path account_home() {
    const passwd* account = ::getpwuid(::geteuid());
    return account && account->pw_dir ? account->pw_dir : "";
}

std::vector<fs::path> candidates() {
    std::vector<fs::path> out;
    if (fs::path own = variable("SATURATE_CACHE"); !own.empty()) out.push_back(own);
    if (fs::path xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) out.push_back(xdg / "saturate");
    fs::path home = variable("HOME");
    if (home.empty() && out.empty()) home = account_home();
    if (!home.empty() && home != "/") out.push_back(home / ".cache/saturate");
    std::error_code error;
    if (fs::path temporary = fs::temp_directory_path(error); !error)
        out.push_back(temporary / fmt::format("saturate-{}", ::geteuid()));
    return out;
}

// A folder that is removed at the end of the process.
class Passing {
  public:
    Passing() {
        std::error_code error;
        fs::path parent = fs::temp_directory_path(error);
        std::string pattern = ((error ? "/tmp" : parent) / "saturate-XXXXXX").string();
        if (!::mkdtemp(pattern.data())) {
            throw MachineError({.found = "no folder for the cache was found",
                                .expected = "a folder that you can write to",
                                .fix = "set SATURATE_CACHE"});
        }
        path = pattern;
    }
    ~Passing() {
        std::error_code ignored;
        if (::getpid() == maker_) fs::remove_all(path, ignored);
    }
    Passing(const Passing&) = delete;
    Passing& operator=(const Passing&) = delete;
    fs::path path;

  private:
    pid_t maker_ = ::getpid();
};

// Returns false if the folder exists, others may write to it, and this cannot be changed.
bool close_to_others(const fs::path& folder) {
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0) {
        std::error_code ignored;
        fs::create_directories(folder.parent_path(), ignored);
        ::mkdir(folder.c_str(), 0700);
        return true;  // a folder that cannot be made has no content
    }
    bool is_open = (status.st_mode & 022) != 0;
    if (is_open && status.st_uid == ::geteuid())
        return ::chmod(folder.c_str(), status.st_mode & 07755) == 0;
    return true;
}

}  // namespace

bool is_own_folder(const fs::path& folder, uid_t user) {
    std::error_code error;
    fs::path path = fs::absolute(folder, error).lexically_normal();
    struct stat status {};
    bool is_there = true;
    while (::stat(path.c_str(), &status) != 0) {
        // A link to a missing target can be made to point anywhere.
        if (fs::is_symlink(fs::symlink_status(path, error)) || path == path.parent_path())
            return false;
        path = path.parent_path();
        is_there = false;
    }
    bool is_ours = status.st_uid == user || status.st_uid == 0;
    if (!S_ISDIR(status.st_mode) || !is_ours) return false;
    // An existing folder that others may write to is accepted if `user` owns it and so can close
    // it. For a missing folder, others must not be able to replace it in the nearest existing
    // parent; the sticky bit of /tmp ensures that.
    bool is_open = (status.st_mode & 022) != 0;
    if (is_there) return !is_open || status.st_uid == user;
    return !is_open || (status.st_mode & S_ISVTX) != 0 || status.st_uid == user;
}

fs::path user_cache_folder() {
    for (const fs::path& folder : candidates())
        if (is_own_folder(folder, ::geteuid()) && close_to_others(folder)) return folder;
    static const Passing kPassing;
    return kPassing.path;
}

}  // namespace saturate
