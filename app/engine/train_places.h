// SPDX-License-Identifier: Apache-2.0
// Where a run writes, and what it goes on from: a run belongs to the configuration it was begun
// with, and knows what `--set` changed of it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint.h"
#include "engine/checkpoint_lock.h"

namespace saturate {

struct PlaceWish {
    std::string config;
    std::optional<std::string> resume;  // "auto" or a path
    std::string output;                 // folder of the run; empty: to be chosen
    bool bare = false;                  // no checkpoint is written
};

struct RunPlaces {
    std::filesystem::path record;       // a new folder
    std::filesystem::path checkpoints;  // kept over resumes
    std::optional<FoundCheckpoint> found;
    std::vector<std::string> values;  // --set of the run that goes on, key=value
    std::vector<std::string> notes;   // for the user
    CheckpointLock lock;
};

// Throws UserError: nothing to resume, or another process at work there.
[[nodiscard]] RunPlaces choose_places(const PlaceWish& wish);

// What an earlier command line set and the newer one does not set again, then the newer ones.
[[nodiscard]] std::vector<std::string> joined_values(const std::vector<std::string>& earlier,
                                                     const std::vector<std::string>& newer);

}  // namespace saturate
