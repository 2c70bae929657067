// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a run: one folder each, whole or not at all.
//
//     RUN/checkpoints/step_0000001200/model.safetensors   weights and buffers, for any reader;
//                                                         with `ema` the mean that was judged
//                                     state.safetensors   optimizer, with `ema` the weights
//                                                         themselves, random state
//                                     state.json          the rest, and the seals of the two files
//     RUN/checkpoints/best -> step_0000000800
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/safetensors.h"

namespace saturate {

struct Checkpoint {
    std::int64_t step = 0;
    NamedTensors model;  // on the CPU, nobody else's
    NamedTensors state;
    Json facts;  // of the trainer
};

// Writes `folder`/step_<n> under a temporary name, syncs, renames. Throws MachineError or
// UserError; what was written is removed then.
std::filesystem::path write_checkpoint(const std::filesystem::path& folder,
                                       const Checkpoint& checkpoint);

// Throws UserError: torn, or not a checkpoint.
[[nodiscard]] Checkpoint read_checkpoint(const std::filesystem::path& path);

// The checkpoints of a folder by step, the newest first; leftovers of a crash are not among them.
[[nodiscard]] std::vector<std::filesystem::path> list_checkpoints(
    const std::filesystem::path& folder);

// Leaves the newest `keep` and the one that `best` names; also removes leftovers of a crash. Never
// throws: what cannot be removed stays.
void prune_checkpoints(const std::filesystem::path& folder, std::size_t keep) noexcept;

// Makes `folder`/best name this checkpoint.
void mark_best(const std::filesystem::path& folder, const std::filesystem::path& checkpoint);

struct FoundCheckpoint {
    std::filesystem::path path;
    Checkpoint checkpoint;
    std::vector<std::string> skipped;  // newer ones that are torn, with the reason
};
// The newest that is whole; nothing when there is none at all. Throws UserError when there are some
// and all are torn.
[[nodiscard]] std::optional<FoundCheckpoint> find_checkpoint(const std::filesystem::path& folder);

// Fills `into` (on any device) from tensors of the same names, types and shapes. Throws UserError
// that names every difference, `file` being where they came from.
void load_tensors(const NamedTensors& from, const NamedTensors& into,
                  const std::filesystem::path& file);

}  // namespace saturate
