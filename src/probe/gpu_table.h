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
    std::vector<std::uint64_t> other_memory_bytes;  // sizes also sold, at the same rates
    double bandwidth_gbs = 0;
    double tdp_watts = 0;
    int sm_count = 0;
    double fp32_tflops = 0;
    std::optional<double> tf32_tflops;  // absent: the card cannot
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
    // "by name"; what was assumed where the name fits several ("by name: \"a100\" may be A or B,
    // taken as A"); or what is nearest ("new name: taken as RTX 4090 by capability 8.9 and
    // 24 GB").
    std::string how;
};

[[nodiscard]] std::span<const GpuFacts> gpu_table();
// By the name that NVML or a user gives ("NVIDIA GeForce RTX 4090", "rtx4090", "4090",
// "A100-SXM4-80GB"), then by capability and nearest memory. With a memory given, the variant of
// that size is taken and its memory replaced. Nothing when neither fits.
[[nodiscard]] std::optional<GpuMatch> match_gpu(std::string_view name,
                                                std::optional<Capability> capability,
                                                std::optional<std::uint64_t> memory_bytes);
// docs/gpus.md, made from the table; a test compares the two.
[[nodiscard]] std::string gpu_reference();
// The cards a user may have meant by a name that fits none; empty when nothing is near.
[[nodiscard]] std::vector<std::string> near_gpu_names(std::string_view name);

}  // namespace saturate
