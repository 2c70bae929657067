// SPDX-License-Identifier: Apache-2.0
// Chooses the folders of a training run and the checkpoint to resume from. A run belongs to the
// configuration it was started with, and its record holds the values of `--set`.
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
    std::string output;                 // folder of the run; empty: choose one
    bool bare = false;                  // writes no checkpoints
};

struct RunPlaces {
    std::filesystem::path record;       // a new folder
    std::filesystem::path checkpoints;  // stays the same when a run is resumed
    std::optional<FoundCheckpoint> found;
    std::vector<std::string> values;  // --set of the resumed run, key=value
    std::vector<std::string> notes;   // for the user
    CheckpointLock lock;
};

// Throws UserError if there is nothing to resume or another process uses the folder.
[[nodiscard]] RunPlaces choose_places(const PlaceWish& wish);

// Returns the earlier values that the newer ones do not replace, followed by the newer ones.
[[nodiscard]] std::vector<std::string> joined_values(const std::vector<std::string>& earlier,
                                                     const std::vector<std::string>& newer);

}  // namespace saturate
