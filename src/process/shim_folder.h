// SPDX-License-Identifier: Apache-2.0
// The private folder of one `run`: the Python shim as files, and where its processes leave rings,
// facts and traces.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace saturate {

struct ShimWishes {
    std::string apply;  // as the shim takes it; empty: nothing
    bool with_traces = false;
    bool with_losses = false;
};

class ShimFolder {
  public:
    ShimFolder();   // makes it and writes the shim
    ~ShimFolder();  // removes it with all that is in it
    ShimFolder(const ShimFolder&) = delete;
    ShimFolder& operator=(const ShimFolder&) = delete;

    // Why there is none: a full disk, a folder that nobody may write to. The command runs all the
    // same, watched from outside only. Empty: there is one.
    [[nodiscard]] const std::string& missing_because() const { return missing_because_; }
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    // What the command gets added to its environment.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> environment(
        const ShimWishes& wishes) const;

  private:
    void write();
    std::filesystem::path path_;
    std::string missing_because_;
};

}  // namespace saturate
