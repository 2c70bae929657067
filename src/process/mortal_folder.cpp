// SPDX-License-Identifier: Apache-2.0
#include "process/mortal_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/cache_folder.h"
#include "base/error.h"
#include "base/file.h"
#include "process/child.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kName = "saturate-tmp-";

// A process that outlives us, because nobody else can tidy up after a SIGKILL. It waits for our
// lock. The keepers of our children hold that lock too, so the janitor comes last. Then it removes
// the folder, $0. The work folders of overlays have no permissions, hence the chmod.
constexpr const char* kJanitor = R"sh(
trap '' INT TERM HUP; flock "$0/lock" true || exit; n=0
while [ -e "$0" ] && [ $n -lt 100 ]; do
  rm -rf "$0" 2>/dev/null || { chmod -R u+rwX "$0" 2>/dev/null; sleep 0.1; }; n=$((n+1)); done)sh";

void remove_now(const fs::path& folder) {
    std::error_code error;
    fs::remove_all(folder, error);
    if (!error) return;
    auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator it(folder, options, error), end; it != end;
         it.increment(error)) {
        std::error_code ignored;
        if (it->is_directory(ignored) && !it->is_symlink(ignored))
            fs::permissions(it->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
    }
    fs::remove_all(folder, error);
}

}  // namespace

bool MortalFolder::is_one(const fs::path& path) {
    return path.filename().string().starts_with(kName);
}

void MortalFolder::sweep(const fs::path& parent) {
    std::error_code error;
    for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
        if (!is_one(it->path())) continue;
        int lock = ::open((it->path() / "lock").c_str(), O_RDWR | O_CLOEXEC);
        if (lock < 0) continue;  // belongs to another user or is just being made
        if (::flock(lock, LOCK_EX | LOCK_NB) == 0) remove_now(it->path());
        ::close(lock);
    }
}

MortalFolder::MortalFolder(const fs::path& parent) {
    std::error_code error;
    fs::create_directories(parent, error);
    sweep(parent);
    path_ = make_temporary_folder(parent, kName);
    // Our forks hold this lock too; programs that they start do not.
    lock_ = ::open((path_ / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock_ >= 0) ::flock(lock_, LOCK_EX | LOCK_NB);
    start_janitor();
}

void MortalFolder::start_janitor() {
    int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (lock_ < 0 || null < 0) return;  // the next folder sweeps this one
    try {
        janitor_ = std::make_unique<Child>(
            std::vector<std::string>{"/bin/sh", "-c", kJanitor, path_.string()},
            ChildSettings{
                .no_input = true, .output_fd = null, .error_fd = null, .own_group = true});
    } catch (const UserError&) {  // the next folder sweeps this one
    }
    ::close(null);
}

MortalFolder::~MortalFolder() {
    remove_now(path_);
    if (lock_ >= 0) ::close(lock_);
    if (janitor_) janitor_->wait();
}

fs::path temporary_beside(const fs::path& folder) {
    std::error_code error;
    fs::path own = fs::weakly_canonical(folder, error), temporary = fs::temp_directory_path(error);
    for (const fs::path& one :
         {temporary, fs::path("/var/tmp"), user_cache_folder(), own.parent_path()}) {
        fs::path there = fs::weakly_canonical(one, error);
        bool is_below = std::ranges::mismatch(own, there).in1 == own.end();
        if (!one.empty() && !is_below && ::access(there.c_str(), W_OK) == 0) return there;
    }
    return temporary;
}

}  // namespace saturate
