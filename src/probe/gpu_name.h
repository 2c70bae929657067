// SPDX-License-Identifier: Apache-2.0
// Splits a GPU's name as NVML, data sheets and users write it, so that "Tesla V100-SXM2-16GB" and
// "v100" match in the table. Used by gpu_table.cpp only. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saturate {

struct GpuName {
    // The name without makers, forms and sizes: "4090", "2080 ti", "a100", "6000 ada". Unknown
    // words stay, so that "4090 laptop" is another card than "4090".
    std::string key;
    std::vector<std::string> words;  // the words of `key`
    std::string form;                // "sxm", "pcie", "nvl"; empty: unknown
    std::optional<double> memory_gb;
    bool geforce = false;
};

[[nodiscard]] GpuName parse_gpu_name(std::string_view name);

}  // namespace saturate
