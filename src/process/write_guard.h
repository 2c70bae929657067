// SPDX-License-Identifier: Apache-2.0
// Forbids a process and all that come of it to change anything below a folder (Landlock, Linux 5.19
// or newer; it needs no rights and no namespaces). Made before a fork, put in force in the child.
#pragma once

#include <filesystem>

namespace saturate {

struct WriteGuardSettings {
    std::filesystem::path folder;   // nothing below it may be changed ...
    std::filesystem::path allowed;  // ... but for this, where it is below
};

class WriteGuard {
  public:
    explicit WriteGuard(const WriteGuardSettings& settings);
    ~WriteGuard();
    WriteGuard(const WriteGuard&) = delete;
    WriteGuard& operator=(const WriteGuard&) = delete;

    // False where this system cannot.
    [[nodiscard]] bool is_there() const { return rules_ >= 0; }
    // In the child of a fork, before it becomes another program: no memory is asked for.
    void put_in_force() const;

  private:
    int rules_ = -1;
};

}  // namespace saturate
