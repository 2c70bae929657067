// SPDX-License-Identifier: Apache-2.0
// Forbids a process and its descendants to change anything below a folder (Landlock, Linux 5.19 or
// newer; needs no privileges and no namespaces). Made before a fork, put in force in the child.
#pragma once

#include <filesystem>

namespace saturate {

struct WriteGuardSettings {
    std::filesystem::path folder;   // nothing below it may be changed ...
    std::filesystem::path allowed;  // ... except this, if it lies below
};

class WriteGuard {
  public:
    explicit WriteGuard(const WriteGuardSettings& settings);
    ~WriteGuard();
    WriteGuard(const WriteGuard&) = delete;
    WriteGuard& operator=(const WriteGuard&) = delete;

    // False if this system cannot do it.
    [[nodiscard]] bool is_there() const { return rules_ >= 0; }
    // Called in the child of a fork before exec. Allocates no memory.
    void put_in_force() const;

  private:
    int rules_ = -1;
};

}  // namespace saturate
