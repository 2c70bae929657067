// SPDX-License-Identifier: Apache-2.0
// The facts that decide on a remedy: the machine, the job, the values in force and, after a run,
// its measurements. Shared by optimize, diagnose, tune and fix; each fills in what it knows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/assignment.h"
#include "config/schema.h"
#include "config/settings.h"
#include "probe/gpu_table.h"
#include "probe/machine.h"
#include "remedies/workload.h"

namespace saturate {

// Measured times of one batch and its step.
struct LoaderTimes {
    double fetch_seconds = 0;               // one worker's time for one batch
    double compute_seconds = 0;             // the step without the wait for its batch
    std::optional<bool> waits_for_storage;  // rather than using a core; absent: unknown
};

struct Facts {
    // The machine here, or the machine that the configuration is for.
    int cores = 1;          // that all processes of the job may use together; 0: unknown
    int processes = 1;      // that share the cores, one per GPU
    bool on_cpu = true;     // loader and model share the cores
    bool has_bf16 = false;  // in hardware
    bool has_fp16 = false;  // a GPU with tensor cores: worth a try
    bool has_tf32 = false;
    // The job.
    bool has_images = false;  // convolutions: layout matters
    bool in_engine = false;   // `train` runs it
    bool can_compile = true;
    bool can_cache = true;   // images in files; table rows are in memory already
    bool is_python = false;  // a script under `run`: settings without a flag go through the shim
    bool in_memory = false;  // the data set is rows of tensors in memory
    std::int64_t dataset_size = 0;  // 0: unknown
    std::uint64_t memory_available_bytes = 0;
    std::uint64_t device_memory_bytes = 0;  // of a GPU; 0: unknown
    bool busy_is_exact = false;  // the device's busy time has no hidden gaps (simulated device)
    Level level = Level::training;
    std::optional<GpuFacts> gpu = {};  // absent with on_cpu false: an unknown GPU
    std::optional<int> workers_asked = {};
    std::optional<ModelShape> shape = {};  // of the model that the configuration describes
    // Values by canonical name. Absent: unknown, or left to the program.
    Assignment start = {};  // the original values
    Assignment now = {};    // with the changes so far
    // Measured.
    bool is_measuring = false;               // the proposal will be tried, so more may be proposed
    std::optional<LoaderTimes> loader = {};  // if the job waits for batches
    double step_seconds = 0;
    double spread = 0;  // of the rate; a large spread means waits in bursts

    [[nodiscard]] int cores_per_process() const;
    [[nodiscard]] std::string device() const;  // "RTX 4090", "the GPU", "this CPU"
    [[nodiscard]] Precision best_precision() const;

    // The values in `now`.
    [[nodiscard]] std::string value(std::string_view name) const;  // empty: absent
    [[nodiscard]] std::optional<double> number(std::string_view name) const;
    [[nodiscard]] bool is_on(std::string_view name) const;
    [[nodiscard]] bool is_off(std::string_view name) const;
    // Records a change that later remedies build on.
    void put(const std::string& name, const std::string& text);
};

// The facts about the machine. Without `gpu` the model trains on the CPU.
[[nodiscard]] Facts machine_facts(const CpuFacts& cpu, const MemoryFacts& memory,
                                  const std::optional<GpuFacts>& gpu, Level level);
// Adds the facts about the job that a configuration tells.
void add_settings(Facts& facts, const Settings& settings);

// All settings in the file, in the syntax of `train --set`. Leaves out values that the file leaves
// open (auto, null, ${...}).
[[nodiscard]] Assignment values_in_force(const Settings& settings);
// The value in `settings`, or the schema's default.
[[nodiscard]] std::string value_of(const Assignment& settings, const std::string& key);
// Adds the schema's defaults for absent settings. For jobs that the engine trains.
[[nodiscard]] Assignment with_defaults(Assignment settings);
[[nodiscard]] bool is_on_text(std::string_view value);

}  // namespace saturate
