// SPDX-License-Identifier: Apache-2.0
// LibTorch and the CUDA toolkit as they lie on the disk. Nothing is loaded or run: that would take
// longer than the verbs that ask.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace saturate {

struct TorchFacts {
    std::filesystem::path folder;             // empty: this build is without LibTorch
    bool found = false;                       // its library is still there
    std::optional<std::string> version;       // "2.9.1+cpu"
    std::optional<std::string> cuda_version;  // that it was built for; absent: the CPU alone
    bool gpu_ready = false;                   // and the CUDA libraries it needs lie beside it
};

// `site` holds torch/, as the build was told; empty when it was built without.
[[nodiscard]] TorchFacts probe_torch(const std::filesystem::path& site);

// Throws where the LibTorch in the folder `torch` is not of the minor version that a program was
// built with, "2.15": tensors are laid out in another way there, and no linker tells. One that does
// not say its version is taken as it is.
void refuse_other_torch(const std::filesystem::path& torch, std::string_view built_with);

struct ToolkitFacts {
    std::filesystem::path folder;
    std::optional<std::string> version;
};

// The first of the folders that holds a CUDA toolkit (bin/nvcc).
[[nodiscard]] std::optional<ToolkitFacts> probe_toolkit(
    std::span<const std::filesystem::path> folders);

}  // namespace saturate
