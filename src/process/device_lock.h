// SPDX-License-Identifier: Apache-2.0
// Two searches on one device would measure each other: the second is refused.
#pragma once

#include <string>

namespace saturate {

class DeviceLock {
  public:
    // Throws UserError when another process holds it. A cache that cannot be written is no reason
    // to stop: then there is no lock.
    explicit DeviceLock(const std::string& device);
    ~DeviceLock();
    DeviceLock(const DeviceLock&) = delete;
    DeviceLock& operator=(const DeviceLock&) = delete;

  private:
    int fd_ = -1;
};

}  // namespace saturate
