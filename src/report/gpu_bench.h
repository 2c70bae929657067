// SPDX-License-Identifier: Apache-2.0
// What `saturate bench gpu` found out about a card: the reference jobs before and after, what
// diagnose foretold, and how near the simulated device comes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "config/assignment.h"
#include "diagnosis/finding.h"
#include "tuning/proof.h"

namespace saturate {

// Samples per second on the device and on its simulation, with the same settings.
struct SimulatedRate {
    double real = 0, simulated = 0;
    [[nodiscard]] double off_percent() const { return 100 * (simulated / real - 1); }
};

struct GpuBenchJob {
    std::string name;
    std::optional<Proof> proof;
    std::string without_proof;     // why there is none
    std::optional<Gain> foretold;  // by diagnose, of the job as it was
    Assignment settings;           // that made the difference
    std::optional<SimulatedRate> before, after;
};

struct GpuBench {
    std::string version, device;
    std::string card;  // as the GPU table has it; empty: not there, so nothing is simulated
    bool is_simulated = false;  // the device itself: no card was measured
    Json selftest;              // what `selftest -o` wrote; null: it did not run
    bool calibrated = false;    // the simulated device has the rates that were measured here
    double seconds = 0;
    std::vector<GpuBenchJob> jobs;
};

[[nodiscard]] Json to_json(const GpuBench& bench);
[[nodiscard]] std::string gpu_bench_text(const GpuBench& bench);
[[nodiscard]] std::string gpu_bench_page(const GpuBench& bench);  // HTML, on its own

}  // namespace saturate
