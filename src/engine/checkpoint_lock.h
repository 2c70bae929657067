// SPDX-License-Identifier: Apache-2.0
// Lets only one process write the checkpoints of a folder: two would prune each other's best. Held
// until destroyed; the kernel releases it if the process dies.
#pragma once

#include <filesystem>

namespace saturate {

class CheckpointLock {
  public:
    CheckpointLock() = default;  // holds nothing
    // Creates the folder if needed. Throws UserError if another process holds the lock. A file
    // system without locks or an unwritable folder stays unlocked: writing will report the error.
    explicit CheckpointLock(const std::filesystem::path& folder);
    ~CheckpointLock();
    CheckpointLock(CheckpointLock&& other) noexcept;
    CheckpointLock& operator=(CheckpointLock&& other) noexcept;
    [[nodiscard]] bool is_held() const { return file_ >= 0; }

  private:
    int file_ = -1;
};

}  // namespace saturate
