// SPDX-License-Identifier: Apache-2.0
// What a remedy is chosen by: the machine, the job, the values in force and, where there was a run,
// what it measured. The one kind of facts that optimize, diagnose, tune and fix share; each fills
// in what it knows.
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

// Of one batch and its step, measured.
struct LoaderTimes {
    double fetch_seconds = 0;               // what making one batch takes, by one worker
    double compute_seconds = 0;             // the step without waiting for its batch
    std::optional<bool> waits_for_storage;  // rather than using a core; absent: not known
};

struct Facts {
    // The machine, or the one that the configuration is for.
    int cores = 1;          // that the job may use, all its processes together; 0: not known
    int processes = 1;      // that share them, one per GPU
    bool on_cpu = true;     // loader and model share the cores
    bool has_bf16 = false;  // in hardware
    bool has_fp16 = false;  // worth a try: a GPU with tensor cores
    bool has_tf32 = false;
    // The job.
    bool has_images = false;  // convolutions: layout matters
    bool in_engine = false;   // `train` trains it
    bool can_compile = true;
    bool can_cache = true;   // images in files; rows of a table are in memory already
    bool is_python = false;  // a script under `run`: what has no flag goes through its shim ...
    bool in_memory = false;  // ... and its data set is rows of tensors in memory
    std::int64_t dataset_size = 0;  // 0: not known
    std::uint64_t memory_available_bytes = 0;
    std::uint64_t device_memory_bytes = 0;  // of a GPU; 0: not known
    bool busy_is_exact = false;  // the busy time of the device holds no gap (a simulated one)
    Level level = Level::training;
    std::optional<GpuFacts> gpu = {};  // absent with on_cpu false: some GPU
    std::optional<int> workers_asked = {};
    std::optional<ModelShape> shape = {};  // of a model that the configuration describes
    // Values by canonical name; what is absent is not known, or left to the program.
    Assignment start = {};  // as they were
    Assignment now = {};    // ... with the changes so far
    // Measured.
    bool is_measuring = false;               // what is proposed will be tried: more may be proposed
    std::optional<LoaderTimes> loader = {};  // where batches are waited for
    double step_seconds = 0;
    double spread = 0;  // of the rate: waits come in bursts

    [[nodiscard]] int cores_per_process() const;
    [[nodiscard]] std::string device() const;  // "RTX 4090", "the GPU", "this CPU"
    [[nodiscard]] Precision best_precision() const;

    // Of `now`.
    [[nodiscard]] std::string value(std::string_view name) const;  // empty: not there
    [[nodiscard]] std::optional<double> number(std::string_view name) const;
    [[nodiscard]] bool is_on(std::string_view name) const;
    [[nodiscard]] bool is_off(std::string_view name) const;
    // A change that later remedies build on.
    void put(const std::string& name, const std::string& text);
};

// The machine's part. `gpu` absent: the CPU trains.
[[nodiscard]] Facts machine_facts(const CpuFacts& cpu, const MemoryFacts& memory,
                                  const std::optional<GpuFacts>& gpu, Level level);
// ... and what a configuration tells of the job.
void add_settings(Facts& facts, const Settings& settings);

// Every setting that the file names, in the words of `train --set`. What the file leaves open
// (auto, null, ${...}) is not there.
[[nodiscard]] Assignment values_in_force(const Settings& settings);
// The value, or the schema's default.
[[nodiscard]] std::string value_of(const Assignment& settings, const std::string& key);
// With the schema's defaults for what is absent: of a job that the engine trains.
[[nodiscard]] Assignment with_defaults(Assignment settings);
[[nodiscard]] bool is_on_text(std::string_view value);

}  // namespace saturate
