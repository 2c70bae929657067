// SPDX-License-Identifier: Apache-2.0
// A folder for temporary files that is removed when this process ends, even by SIGKILL, and after
// the processes that it started as a Child with a tree. After a power loss, the next folder made in
// the same place sweeps up the remains.
#pragma once

#include <filesystem>
#include <memory>

namespace saturate {

class Child;

class MortalFolder {
  public:
    // Makes the folder below `parent`. Throws MachineError if `parent` cannot be written to.
    explicit MortalFolder(const std::filesystem::path& parent);
    ~MortalFolder();
    MortalFolder(const MortalFolder&) = delete;
    MortalFolder& operator=(const MortalFolder&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    // True if the path is the path of such a folder.
    [[nodiscard]] static bool is_one(const std::filesystem::path& path);

  private:
    static void sweep(const std::filesystem::path& parent);
    void start_janitor();

    std::filesystem::path path_;
    int lock_ = -1;  // held while anybody uses the folder
    std::unique_ptr<Child> janitor_;
};

// Returns a place for temporary files that is not below `folder`.
[[nodiscard]] std::filesystem::path temporary_beside(const std::filesystem::path& folder);

}  // namespace saturate
