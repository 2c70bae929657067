// SPDX-License-Identifier: Apache-2.0
#include "process/write_guard.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr long kLeastVersion = 2;                // allows rules for renaming between folders
constexpr std::size_t kMost = 4000;              // entries; more rules would take too long
constexpr std::uint64_t kTruncate = 1ULL << 14;  // from version 3 on; older headers lack it
constexpr long kTruncateVersion = 3;
constexpr std::uint64_t kOfFiles = LANDLOCK_ACCESS_FS_WRITE_FILE;
constexpr std::uint64_t kOfFolders =
    LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
    LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
    LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM |
    LANDLOCK_ACCESS_FS_REFER;

class Rules {
  public:
    Rules() {
        long version =
            ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
        if (version < kLeastVersion) return;
        files_ = kOfFiles | (version >= kTruncateVersion ? kTruncate : 0);
        landlock_ruleset_attr handled{};
        handled.handled_access_fs = files_ | kOfFolders;
        fd_ = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0));
    }
    // Allows changes of this path and everything below it. Skips links, because a rule for a link
    // applies to its target, which lies elsewhere.
    void allow(const fs::path& path) {
        int place = ::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct stat kind {};
        if (place >= 0 && ::fstat(place, &kind) == 0 && !S_ISLNK(kind.st_mode)) {
            landlock_path_beneath_attr rule{};
            rule.allowed_access = S_ISDIR(kind.st_mode) ? files_ | kOfFolders : files_;
            rule.parent_fd = place;
            ::syscall(SYS_landlock_add_rule, fd_, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
        }
        if (place >= 0) ::close(place);
    }
    [[nodiscard]] int fd() const { return fd_; }

  private:
    int fd_ = -1;
    std::uint64_t files_ = 0;
};

}  // namespace

// Landlock rules only allow. So this allows everything next to the path from / down to the folder.
WriteGuard::WriteGuard(const WriteGuardSettings& settings) {
    Rules rules;
    if (rules.fd() < 0) return;
    std::error_code error;
    fs::path folder = fs::canonical(settings.folder, error);
    std::size_t entries = 0;
    for (fs::path below = folder; !error && below.has_relative_path();
         below = below.parent_path()) {
        auto options = fs::directory_options::skip_permission_denied;
        for (fs::directory_iterator it(below.parent_path(), options, error), end;
             !error && it != end; it.increment(error)) {
            if (it->path() != below) rules.allow(it->path());
            if (++entries > kMost) error = std::make_error_code(std::errc::argument_list_too_long);
        }
    }
    if (!settings.allowed.empty()) rules.allow(fs::weakly_canonical(settings.allowed, error));
    if (error)
        ::close(rules.fd());
    else
        rules_ = rules.fd();
}

WriteGuard::~WriteGuard() {
    if (rules_ >= 0) ::close(rules_);
}

void WriteGuard::put_in_force() const {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ::syscall(SYS_landlock_restrict_self, rules_, 0);
}

}  // namespace saturate
