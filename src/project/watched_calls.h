// SPDX-License-Identifier: Apache-2.0
// What a watched run shows about the calls in the source: the loaders and optimizers that it made,
// their values, and the calls that it never made. Pure.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "project/facts.h"

namespace saturate {

struct WatchedLoader {
    int call = -1;
    Json values;  // num_workers, persistent_workers and, on a GPU, pin_memory, as used
    bool trains = false;
    bool has_epochs = false;  // the run iterated it more than once
    bool is_own = false;      // a saturate_gpu.Loader around the call in the source
    Json like;  // answer of saturate_gpu.Loader.like: takes, why, is_installed; null: not asked
};

struct WatchedCalls {
    std::vector<WatchedLoader> loaders;
    std::set<int> unseen;  // loaders and optimizers in the source that the run did not make

    [[nodiscard]] const WatchedLoader* loader(int call) const;  // null: not seen
    // True if the run cannot have run this loop, because it did not make its loader or optimizer.
    [[nodiscard]] bool is_unseen(const FactLoop& loop) const;
};

// `python` is the python.json of a run.
[[nodiscard]] WatchedCalls watched_calls(const ProjectFacts& facts, const Json& python);

// The folders that the run wrote files to, without folders below those in `apart`.
[[nodiscard]] std::vector<std::string> folders_written(
    const Json& python, const std::vector<std::filesystem::path>& apart);

}  // namespace saturate
