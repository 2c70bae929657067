// SPDX-License-Identifier: Apache-2.0
// Writes checkpoints in the background: save() hands one over and returns. A full disk costs only
// that checkpoint; the last good one stays. Call save() from one thread.
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
    std::string failure;  // empty: it is on disk
};

class CheckpointWriter {
  public:
    CheckpointWriter(std::filesystem::path folder, std::size_t keep);
    ~CheckpointWriter();  // finishes writing first

    // Waits only while the previous checkpoint is still being written.
    void save(Checkpoint checkpoint, bool is_best);
    // Returns the checkpoints finished since the last call.
    [[nodiscard]] std::vector<SavedCheckpoint> take_finished();
    void wait();  // until nothing is being written

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
