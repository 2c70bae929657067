// SPDX-License-Identifier: Apache-2.0
// What the search may try next, by cause: a list of changes to the settings in force, each with its
// level and its reason. Pure: nothing is measured here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/schema.h"
#include "remedies/catalogue.h"
#include "tuning/trial.h"

namespace saturate {

// What the search knows besides measurements.
struct TuningFacts {
    int cores = 1;          // that the job may use
    bool on_cpu = true;     // loader and model share the cores
    bool has_bf16 = false;  // in hardware
    bool has_fp16 = false;  // worth a try: a GPU with tensor cores
    bool has_tf32 = false;
    bool has_images = false;  // convolutions: layout matters
    bool can_compile = true;
    bool can_cache = true;   // images in files; rows of a table are in memory already
    bool is_python = false;  // a script under `run`: what has no flag goes through its shim ...
    bool in_memory = false;  // ... and its data set is rows of tensors in memory
    std::int64_t dataset_size = 0;  // 0: unknown
    std::uint64_t memory_available_bytes = 0;
    std::uint64_t device_memory_bytes = 0;  // of a GPU; 0: unknown
    bool busy_is_exact = false;  // the busy time of the device holds no gap (a simulated one)
    Level level = Level::training;
};

struct Move {
    std::string cause;   // "input", "precision", ...
    Assignment change;   // over the settings in force
    std::string reason;  // one line
    Relief relief = Relief::unknown;
};

// The most that a change can take off the step, as a share of its time, by what was measured; 1
// where that does not tell.
[[nodiscard]] double most_gain(Relief relief, const TuningFacts& facts, const Rate& rate);

// The loader is the brake: workers from the measured wait, then prefetch and cache. `rate` is the
// measured one, `bound` the rate without the loader.
[[nodiscard]] std::vector<Move> loader_moves(const TuningFacts& facts, const Assignment& now,
                                             const Rate& rate, double bound);

// The device is the brake, or the host in front of it: copies, readings of the loss, precision,
// layout, optimizer, threads and, on a GPU, the captured step. One at a time.
[[nodiscard]] std::vector<Move> compute_moves(const TuningFacts& facts, const Assignment& now,
                                              double step_seconds);

// The compiled step, where there is one to try.
[[nodiscard]] std::optional<Move> compiler_move(const TuningFacts& facts, const Assignment& now);

}  // namespace saturate
