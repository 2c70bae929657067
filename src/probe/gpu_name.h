// SPDX-License-Identifier: Apache-2.0
// Takes apart what NVML, data sheets and users call a GPU, so that "Tesla V100-SXM2-16GB" and
// "v100" meet in the table. Used by gpu_table.cpp only. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saturate {

struct GpuName {
    // What is left without makers, forms and sizes: "4090", "2080 ti", "a100", "6000 ada". Words
    // that are not known stay in it, so that "4090 laptop" is another card than "4090".
    std::string key;
    std::vector<std::string> words;  // of the key
    std::string form;                // "sxm", "pcie", "nvl" or empty
    std::optional<double> memory_gb;
    bool geforce = false;
};

[[nodiscard]] GpuName parse_gpu_name(std::string_view name);

}  // namespace saturate
