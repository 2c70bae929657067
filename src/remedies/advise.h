// SPDX-License-Identifier: Apache-2.0
// From settings and a machine to the changes that would keep its device busy, each with its reason.
// Nothing here is measured; what only a measurement can tell is said to be so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/document.h"
#include "config/edit.h"
#include "config/settings.h"
#include "probe/gpu_table.h"

namespace saturate {

// The machine that the configuration is for: this one, or one elsewhere.
struct Target {
    std::optional<GpuFacts> gpu;  // absent: the CPU
    int gpus = 1;
    int cores = 1;  // that the job may use, all processes together
    std::uint64_t memory_bytes = 0;
    bool cpu_has_bf16 = false;
    std::optional<int> workers;          // asked for by the user
    std::optional<double> dataset_size;  // likewise

    [[nodiscard]] int cores_per_process() const { return std::max(1, cores / std::max(1, gpus)); }
};

struct Change {
    Setting setting;
    Edit edit;
    int line = 0;        // 0: the key is new
    std::string before;  // empty: the key is new
    std::string after;
    Level level = Level::safe;
    std::string reason;
    std::string effect;  // what to expect of it
};

struct Advice {
    std::vector<Change> changes;
    std::vector<Warning>
        warnings;  // contradictions and settings without effect, as the file stands
    std::vector<std::string> notes;  // what was left alone and why
};

[[nodiscard]] Advice advise(const Document& document, const Settings& settings,
                            const Target& target, Level level);

// A value that was found elsewhere, by measuring: canonical name, and value as `train --set` takes
// it.
struct FoundValue {
    Setting setting;
    std::string value;
    std::string reason;
    std::string effect;  // what was measured
};

// The changes that write these values in the words of the file's dialect. What it has no word for
// becomes a note.
[[nodiscard]] Advice advise_values(const Document& document, const Settings& settings,
                                   const std::vector<FoundValue>& values);

}  // namespace saturate
