// SPDX-License-Identifier: Apache-2.0
#include "process/device_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "base/cache_folder.h"
#include "base/error.h"

namespace saturate {

namespace fs = std::filesystem;

DeviceLock::DeviceLock(const std::string& device) {
    fs::path folder = user_cache_folder();
    std::error_code ignored;
    fs::create_directories(folder, ignored);
    // A simulated device uses the cores of this machine, as the CPU does.
    std::string name = device.starts_with("sim:") ? "cpu" : device;
    std::ranges::replace_if(
        name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '-');
    fs::path file = folder / ("tune-" + name + ".lock");
    fd_ = ::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (fd_ < 0 || ::flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
    ::close(fd_);
    fd_ = -1;
    throw UserError({.where = {file.string()},
                     .found = fmt::format("another search is already measuring on {}", device),
                     .expected = "one search at a time: two would disturb each other",
                     .fix = "wait for it to end, or measure on another device"});
}

DeviceLock::~DeviceLock() {
    if (fd_ >= 0) ::close(fd_);
}

}  // namespace saturate
