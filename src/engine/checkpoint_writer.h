// SPDX-License-Identifier: Apache-2.0
// Writes checkpoints beside the training: save() hands one over and returns. A disk that is full
// costs that checkpoint and nothing else; the last good one stays. save() from one thread.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint.h"

namespace saturate {

struct SavedCheckpoint {
    std::int64_t step = 0;
    std::filesystem::path path;
    std::int64_t duration_ns = 0;
    bool is_best = false;
    std::string failure;  // empty: it is on the disk
};

class CheckpointWriter {
  public:
    CheckpointWriter(std::filesystem::path folder, std::size_t keep);
    ~CheckpointWriter();  // finishes what was handed over

    // Waits only while the one before is still being written.
    void save(Checkpoint checkpoint, bool is_best);
    // What was finished since the last call.
    [[nodiscard]] std::vector<SavedCheckpoint> take_finished();
    void wait();  // until nothing is being written

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
