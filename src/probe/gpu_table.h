// SPDX-License-Identifier: Apache-2.0
// Facts about GPUs (src/probe/gpus.csv, each row with its sources). Peak rates are dense.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/device.h"

namespace saturate {

enum class Precision { fp32, fp16, bf16 };
[[nodiscard]] std::string_view precision_name(Precision precision);  // "fp32", "fp16", "bf16"

struct GpuFacts {
    std::string name;
    std::string arch;
    std::optional<Capability> capability;  // AMD has none
    std::uint64_t memory_bytes = 0;
    std::vector<std::uint64_t> other_memory_bytes;  // other sizes on sale, with the same rates
    double bandwidth_gbs = 0;
    double tdp_watts = 0;
    int sm_count = 0;
    double fp32_tflops = 0;
    std::optional<double> tf32_tflops;  // absent: not supported
    std::optional<double> fp16_tflops;  // tensor cores, accumulating in fp32
    std::optional<double> bf16_tflops;
    std::optional<double> fp8_tflops;
    bool has_bf16 = false;
    bool has_tf32 = false;
    Precision best_precision = Precision::fp32;
    bool needs_grad_scaler = false;
    std::string source;
    std::string note;
};

enum class GpuMatchKind { name, capability };

struct GpuMatch {
    GpuFacts facts;
    GpuMatchKind kind = GpuMatchKind::name;
    // How the match was made: "by name"; the assumption if the name fits several cards ("by name:
    // \"a100\" may be A or B; treated as A"); or the nearest card ("new name: taken as RTX 4090 by
    // capability 8.9 and 24 GB").
    std::string how;
};

[[nodiscard]] std::span<const GpuFacts> gpu_table();
// Matches the name that NVML or a user gives ("NVIDIA GeForce RTX 4090", "rtx4090", "4090",
// "A100-SXM4-80GB"), else the capability and the nearest memory. If the memory is given, takes the
// variant with that size and replaces its memory. Returns nothing if neither fits.
[[nodiscard]] std::optional<GpuMatch> match_gpu(
    std::string_view name, std::optional<Capability> capability = std::nullopt,
    std::optional<std::uint64_t> memory_bytes = std::nullopt);
[[nodiscard]] std::optional<GpuMatch> match_gpu(const GpuIdentity& gpu);
// The text of docs/gpus.md, made from the table. A test compares the two.
[[nodiscard]] std::string gpu_reference();
// Cards that a user may have meant by an unknown name. Empty if none is similar.
[[nodiscard]] std::vector<std::string> near_gpu_names(std::string_view name);

}  // namespace saturate
