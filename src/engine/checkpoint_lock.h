// SPDX-License-Identifier: Apache-2.0
// One process at a time writes the checkpoints of a folder: two would prune each other's best.
// Held until it is destroyed; the kernel gives it back when the process dies.
#pragma once

#include <filesystem>

namespace saturate {

class CheckpointLock {
  public:
    CheckpointLock() = default;  // holds nothing
    // Makes the folder if it must. Throws UserError when another process holds it. A file system
    // without locks, or a folder that cannot be written, is left unlocked: writing will tell.
    explicit CheckpointLock(const std::filesystem::path& folder);
    ~CheckpointLock();
    CheckpointLock(CheckpointLock&& other) noexcept;
    CheckpointLock& operator=(CheckpointLock&& other) noexcept;
    [[nodiscard]] bool is_held() const { return file_ >= 0; }

  private:
    int file_ = -1;
};

}  // namespace saturate
