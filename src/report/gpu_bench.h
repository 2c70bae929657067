// SPDX-License-Identifier: Apache-2.0
// The results of `saturate bench gpu` for a GPU: the reference jobs before and after, the
// prediction of diagnose, and how close the simulated device comes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "config/assignment.h"
#include "diagnosis/diagnosis.h"
#include "tuning/proof.h"
#include "tuning/search.h"

namespace saturate {

// Samples per second on the device and on its simulation, with the same settings.
struct SimulatedRate {
    double real = 0, simulated = 0;
    [[nodiscard]] double off_percent() const { return 100 * (simulated / real - 1); }
};

// What the search kept of the fixes that diagnose named. The batch size is not among them: a
// prediction is for the batches as they are.
struct NamedFixes {
    double ratio = 1;                   // measured, all of them together
    std::vector<std::string> settings;  // by canonical name
};
[[nodiscard]] NamedFixes named_fixes(const Diagnosis& diagnosis, const SearchAnswer& search);

struct GpuBenchJob {
    std::string name;
    std::optional<Proof> proof;
    std::string without_proof;     // why there is no proof
    std::optional<Gain> foretold;  // predicted by diagnose for the unchanged job
    NamedFixes named;              // ... and measured
    Assignment settings;           // the best settings found
    std::optional<SimulatedRate> before, after;
};

struct GpuBench {
    std::string version, device;
    std::string card;           // its name in the GPU table; empty if not there: no simulation
    bool is_simulated = false;  // the device itself: no GPU was measured
    Json selftest;              // output of `selftest -o`; null if it did not run
    bool calibrated = false;    // the simulated device uses rates measured here
    double seconds = 0;
    std::vector<GpuBenchJob> jobs;
};

[[nodiscard]] Json to_json(const GpuBench& bench);
[[nodiscard]] std::string gpu_bench_text(const GpuBench& bench);
[[nodiscard]] std::string gpu_bench_page(const GpuBench& bench);  // self-contained HTML

}  // namespace saturate
