// SPDX-License-Identifier: Apache-2.0
// Finds LibTorch and the CUDA toolkit on the disk. Loads and runs nothing: that would take longer
// than the verbs that ask.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace saturate {

struct TorchFacts {
    std::filesystem::path folder;             // empty: this build has no LibTorch
    bool found = false;                       // the library is still there
    std::optional<std::string> version;       // "2.9.1+cpu"
    std::optional<std::string> cuda_version;  // CUDA version of the build; absent: CPU only
    bool gpu_ready = false;                   // built for CUDA, and its CUDA libraries are there
};

// `site` is the folder with torch/, as the build was told; empty: built without.
[[nodiscard]] TorchFacts probe_torch(const std::filesystem::path& site);

// Throws if the LibTorch in the folder `torch` has another minor version than the program was built
// with, such as "2.15". It lays out tensors differently, and the linker does not notice. A LibTorch
// without a version is accepted.
void refuse_other_torch(const std::filesystem::path& torch, std::string_view built_with);

struct ToolkitFacts {
    std::filesystem::path folder;
    std::optional<std::string> version;
};

// The first of the folders that has a CUDA toolkit (bin/nvcc).
[[nodiscard]] std::optional<ToolkitFacts> probe_toolkit(
    std::span<const std::filesystem::path> folders);

}  // namespace saturate
