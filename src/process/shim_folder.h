// SPDX-License-Identifier: Apache-2.0
// The private folder of one `run`: the Python shim as files, and where its processes leave rings,
// facts and traces.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace saturate {

class ShimFolder {
  public:
    ShimFolder();   // makes it and writes the shim; throws MachineError
    ~ShimFolder();  // removes it with all that is in it
    ShimFolder(const ShimFolder&) = delete;
    ShimFolder& operator=(const ShimFolder&) = delete;

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    // What the command gets added to its environment. `apply` as the shim takes it; empty: nothing.
    [[nodiscard]] std::vector<std::pair<std::string, std::string>> environment(
        const std::string& apply, bool with_traces) const;

  private:
    std::filesystem::path path_;
};

}  // namespace saturate
