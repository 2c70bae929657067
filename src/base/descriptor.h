// SPDX-License-Identifier: Apache-2.0
// Owns a file descriptor and closes it: of a file, a socket, memory or a process.
#pragma once

#include <unistd.h>

#include <utility>

namespace saturate {

class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int fd) : fd_(fd) {}  // below 0: none, as open() returns it
    ~Descriptor() { close(); }
    Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        int fd = other.release();
        close();
        fd_ = fd;
        return *this;
    }

    [[nodiscard]] bool is_open() const { return fd_ >= 0; }
    [[nodiscard]] int get() const { return fd_; }
    // The caller closes it.
    [[nodiscard]] int release() { return std::exchange(fd_, -1); }
    int close() { return fd_ >= 0 ? ::close(release()) : 0; }

  private:
    int fd_ = -1;
};

}  // namespace saturate
