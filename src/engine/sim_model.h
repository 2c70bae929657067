// SPDX-License-Identifier: Apache-2.0
// How long a counted step would take on a GPU of the table, and how much memory it would need. A
// model: each operator takes the longest of its arithmetic, its memory traffic and a kernel's least
// time. Its parameters are the one table in sim_model.cpp, with their sources.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/gpu_table.h"

namespace saturate {

enum class OpClass { matrix, convolution, recurrent, elementwise, optimizer };

// One operator of a step; what grows with the batch is told apart by counting two sizes.
struct OpCost {
    std::string name;
    OpClass kind = OpClass::elementwise;
    double flops_fixed = 0, flops_per_sample = 0;
    double bytes_fixed = 0, bytes_per_sample = 0;
    double in_turn = 1;  // kernels of which each waits for the one before: steps of a sequence
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
    bool captured = false;  // one graph per step: launching costs the host next to nothing
};

struct SimStep {
    double device_seconds = 0;
    double host_seconds = 0;  // launching
    double memory_bytes = 0;
    int kernels = 0;
};

// Arithmetic that a card has rates of its own for.
enum class RateKind { fp32, tf32, fp16, bf16 };
inline constexpr std::size_t kRateKinds = 4;

// What was measured on a card (device_rates.h), in place of the model's own figures where it is
// there.
struct MeasuredRates {
    std::array<std::optional<double>, kRateKinds> matrix, convolution;  // FLOP/s
    std::optional<double> memory_bytes_per_second;                      // elementwise
    std::optional<double> kernel_seconds;                               // the shortest kernel
    std::optional<double> launch_seconds;                               // of the host, per operator
    std::optional<double> copy_bytes_per_second;  // to the device, page-locked
    bool operator==(const MeasuredRates&) const = default;
};

[[nodiscard]] SimStep simulate_step(const StepCost& cost, const GpuFacts& gpu,
                                    const SimSettings& settings, double batch,
                                    const MeasuredRates& measured = {});

// Watts at this share of busy time.
[[nodiscard]] double simulated_power(const GpuFacts& gpu, double busy_share);
// Seconds to copy a batch to the device from page-locked or ordinary memory.
[[nodiscard]] double simulated_copy(double bytes, bool pinned, const MeasuredRates& measured = {});

}  // namespace saturate
