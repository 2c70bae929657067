// SPDX-License-Identifier: Apache-2.0
// Refuses a second search on the same device: two searches would measure each other.
#pragma once

#include <string>

namespace saturate {

class DeviceLock {
  public:
    // Throws UserError if another process holds the lock. If the cache folder cannot be written,
    // there is no lock and the search goes on.
    explicit DeviceLock(const std::string& device);
    ~DeviceLock();
    DeviceLock(const DeviceLock&) = delete;
    DeviceLock& operator=(const DeviceLock&) = delete;

  private:
    int fd_ = -1;
};

}  // namespace saturate
