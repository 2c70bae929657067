// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace saturate {

CheckpointLock::CheckpointLock(const std::filesystem::path& folder) {
    std::error_code ignored;
    std::filesystem::create_directories(folder, ignored);
    std::filesystem::path path = folder / ".lock";
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) return;
    if (::flock(file_, LOCK_EX | LOCK_NB) == 0) {
        std::string pid = fmt::format("{}\n", ::getpid());
        [[maybe_unused]] int emptied = ::ftruncate(file_, 0);
        [[maybe_unused]] ssize_t written = ::pwrite(file_, pid.data(), pid.size(), 0);
        return;
    }
    bool is_held = errno == EWOULDBLOCK;
    ::close(std::exchange(file_, -1));
    if (!is_held) return;
    std::string pid(trim(read_if_there(path)));
    throw UserError({.where = {folder.string()},
                     .found = fmt::format("another train is writing its checkpoints here{}",
                                          pid.empty() ? "" : fmt::format(" (process {})", pid)),
                     .expected = "one run per folder at a time",
                     .fix = "wait until it ends, or choose another folder with -o"});
}

CheckpointLock::~CheckpointLock() {
    if (file_ >= 0) ::close(file_);
}

CheckpointLock::CheckpointLock(CheckpointLock&& other) noexcept
    : file_(std::exchange(other.file_, -1)) {}

CheckpointLock& CheckpointLock::operator=(CheckpointLock&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
}

}  // namespace saturate
