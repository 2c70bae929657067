// SPDX-License-Identifier: Apache-2.0
// The checkpoints of a run: one folder each, complete or absent.
//
//     RUN/checkpoints/step_0000001200/model.safetensors   weights and buffers, for any reader;
//                                                         with `ema` the evaluated average
//                                     state.safetensors   optimizer, random state, and with
//                                                         `ema` the weights themselves
//                                     state.json          the rest, and the seals of both files
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
    NamedTensors model;  // on the CPU, owned by the checkpoint alone
    NamedTensors state;
    Json facts;  // from the trainer
};

// Writes `folder`/step_<n> under a temporary name, syncs, renames. Throws MachineError or UserError
// after removing what it wrote.
std::filesystem::path write_checkpoint(const std::filesystem::path& folder,
                                       const Checkpoint& checkpoint);

[[nodiscard]] bool has_checkpoint(const std::filesystem::path& folder, std::int64_t step);

// Throws UserError if the folder is torn or not a checkpoint.
[[nodiscard]] Checkpoint read_checkpoint(const std::filesystem::path& path);

// Returns the checkpoints in a folder, newest step first, without the leftovers of a crash.
[[nodiscard]] std::vector<std::filesystem::path> list_checkpoints(
    const std::filesystem::path& folder);

// Keeps the newest `keep` checkpoints and the one that `best` names; also removes leftovers of a
// crash. Never throws: what it cannot remove stays.
void prune_checkpoints(const std::filesystem::path& folder, std::size_t keep) noexcept;

// Makes `folder`/best a link to this checkpoint.
void mark_best(const std::filesystem::path& folder, const std::filesystem::path& checkpoint);

struct FoundCheckpoint {
    std::filesystem::path path;
    Checkpoint checkpoint;
    std::vector<std::string> skipped;  // newer checkpoints that are torn, with the reason
};
// Returns the newest complete checkpoint, or nothing if the folder has none. Throws UserError if
// all of them are torn.
[[nodiscard]] std::optional<FoundCheckpoint> find_checkpoint(const std::filesystem::path& folder);

// Fills `into` (on any device) from tensors with the same names, types and shapes. Throws UserError
// with every difference; `file` is the source it names.
void load_tensors(const NamedTensors& from, const NamedTensors& into,
                  const std::filesystem::path& file);

}  // namespace saturate
