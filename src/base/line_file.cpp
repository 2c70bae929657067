// SPDX-License-Identifier: Apache-2.0
#include "base/line_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace saturate {

LineFile::LineFile(const std::filesystem::path& path, bool replace) : path_(path) {
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (replace ? O_TRUNC : O_EXCL);
    file_ = Descriptor(::open(path.c_str(), flags, 0644));
    if (!file_.is_open()) {
        throw MachineError(
            {.where = {path.string()},
             .found = fmt::format("not writable: {}", std::strerror(errno)),
             .expected = "a disk with free space and a folder that you can write to"});
    }
}

bool LineFile::has_room() const {
    constexpr std::size_t kMostWaiting = 16u << 20;
    return waiting_.size() < kMostWaiting;
}

void LineFile::write() {
    std::size_t done = 0;
    error_ = 0;
    while (done < waiting_.size()) {
        ssize_t wrote = ::write(file_.get(), waiting_.data() + done, waiting_.size() - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) {
            error_ = wrote < 0 ? errno : ENOSPC;
            break;
        }
        done += static_cast<std::size_t>(wrote);
    }
    waiting_.erase(0, done);
}

std::string LineFile::failure() const {
    if (error_ == 0) return "";
    return fmt::format("{}: {}", path_.string(), std::strerror(error_));
}

std::uint64_t LineFile::lines_waiting() const {
    return static_cast<std::uint64_t>(std::count(waiting_.begin(), waiting_.end(), '\n'));
}

}  // namespace saturate
