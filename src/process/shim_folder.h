// SPDX-License-Identifier: Apache-2.0
// The private folder of one `run`: the files of the Python shim, and the rings, facts and traces
// that its processes leave there.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace saturate {

struct ShimWishes {
    std::string apply;  // in the shim's own syntax; empty: nothing to apply
    bool with_traces = false;
    bool with_losses = false;
};

class ShimFolder {
  public:
    ShimFolder();   // makes the folder and writes the shim
    ~ShimFolder();  // removes the folder and its content
    ShimFolder(const ShimFolder&) = delete;
    ShimFolder& operator=(const ShimFolder&) = delete;

    // Why there is no folder, such as a full disk or missing permission. Then the command still
    // runs, watched from outside only. Empty: the folder is there.
    [[nodiscard]] const std::string& missing_because() const { return missing_because_; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    // Variables to add to the environment of the command.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> environment(
        const ShimWishes& wishes) const;

  private:
    void write();
    std::filesystem::path path_;
    std::string missing_because_;
};

}  // namespace saturate
