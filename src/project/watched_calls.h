// SPDX-License-Identifier: Apache-2.0
// What a watched run tells of the calls that reading found: which loaders and optimizers it made,
// with which values, and which of them never came to be. Pure.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "project/facts.h"

namespace saturate {

struct WatchedLoader {
    int call = -1;
    Json
        values;  // num_workers, persistent_workers and, on a GPU, pin_memory, as they were in force
    bool trains = false;
    bool has_epochs = false;  // it was started again
    bool is_own = false;      // saturate_gpu.Loader, around the call that reading found
    Json like;  // by saturate_gpu.Loader.like: takes, why, is_installed; null: not asked
};

struct WatchedCalls {
    std::vector<WatchedLoader> loaders;
    std::set<int> unseen;  // loaders and optimizers of the source that the run did not make

    [[nodiscard]] const WatchedLoader* loader(int call) const;  // null: not seen
    // Whether a loop over these can have run.
    [[nodiscard]] bool is_unseen(const FactLoop& loop) const;
};

// By the python.json of a run.
[[nodiscard]] WatchedCalls watched_calls(const ProjectFacts& facts, const Json& python);

// Folders that the run wrote files to, without those below one of `apart`.
[[nodiscard]] std::vector<std::string> folders_written(
    const Json& python, const std::vector<std::filesystem::path>& apart);

}  // namespace saturate
