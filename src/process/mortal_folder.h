// SPDX-License-Identifier: Apache-2.0
// A folder for temporary files that goes with this process, even where that is killed, and after
// the processes that it started as a Child with a tree. What a machine that lost its power left is
// swept by the next one.
#pragma once

#include <filesystem>
#include <memory>

namespace saturate {

class Child;

class MortalFolder {
  public:
    // Made below `parent`. Throws MachineError where that cannot be written to.
    explicit MortalFolder(const std::filesystem::path& parent);
    ~MortalFolder();
    MortalFolder(const MortalFolder&) = delete;
    MortalFolder& operator=(const MortalFolder&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    // Whether the path is one of these.
    [[nodiscard]] static bool is_one(const std::filesystem::path& path);

  private:
    static void sweep(const std::filesystem::path& parent);
    void start_janitor();

    std::filesystem::path path_;
    int lock_ = -1;  // held while somebody uses the folder
    std::unique_ptr<Child> janitor_;
};

// A place for temporary files that is not below `folder`.
[[nodiscard]] std::filesystem::path temporary_beside(const std::filesystem::path& folder);

}  // namespace saturate
