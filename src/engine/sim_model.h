// SPDX-License-Identifier: Apache-2.0
// Models how long a counted step takes on a GPU of the table and how much memory it needs. Each
// operator takes the longest of its arithmetic, its memory traffic and a kernel's minimum time. The
// parameters are the one table in sim_model.cpp, with their sources.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/gpu_table.h"

namespace saturate {

enum class OpClass { matrix, convolution, recurrent, elementwise, optimizer };

// One operator of a step, split into a fixed part and a part that grows with the batch. Counting
// with two batch sizes tells them apart.
struct OpCost {
    std::string name;
    OpClass kind = OpClass::elementwise;
    double flops_fixed = 0, flops_per_sample = 0;
    double bytes_fixed = 0, bytes_per_sample = 0;
    double in_turn = 1;  // dependent kernels in sequence: steps of a recurrent layer
};

struct StepCost {
    std::vector<OpCost> ops;
    double model_bytes = 0;  // weights, gradients and optimizer state
    double activation_bytes_fixed = 0, activation_bytes_per_sample = 0;

    [[nodiscard]] double flops(double batch) const;
};

struct SimSettings {
    Precision precision = Precision::fp32;
    bool tf32 = false;
    bool channels_last = false;
    bool captured = false;  // one graph per step: launching costs almost nothing
};

struct SimStep {
    double device_seconds = 0;
    double host_seconds = 0;  // launching
    double memory_bytes = 0;
    int kernels = 0;
};

// Kinds of arithmetic for which cards have separate rates.
enum class RateKind { fp32, tf32, fp16, bf16 };
inline constexpr std::size_t kRateKinds = 4;

// Rates measured on a card (device_rates.h). They replace the model's own figures when present.
struct MeasuredRates {
    std::array<std::optional<double>, kRateKinds> matrix, convolution;  // FLOP/s
    std::optional<double> memory_bytes_per_second;                      // elementwise
    std::optional<double> kernel_seconds;                               // the shortest kernel
    std::optional<double> launch_seconds;                               // host time per operator
    std::optional<double> copy_bytes_per_second;  // to the device, page-locked
    bool operator==(const MeasuredRates&) const = default;
};

[[nodiscard]] SimStep simulate_step(const StepCost& cost, const GpuFacts& gpu,
                                    const SimSettings& settings, double batch,
                                    const MeasuredRates& measured = {});

// Power in watts at this share of busy time.
[[nodiscard]] double simulated_power(const GpuFacts& gpu, double busy_share);
// Seconds to copy a batch to the device from page-locked or ordinary memory.
[[nodiscard]] double simulated_copy(double bytes, bool pinned, const MeasuredRates& measured = {});

}  // namespace saturate
