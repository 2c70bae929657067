// SPDX-License-Identifier: Apache-2.0
// Follows the steps of a run record while it is being written: each call returns the new ones. Used
// from one thread.
#pragma once

#include <filesystem>
#include <ios>
#include <vector>

#include "telemetry/record.h"

namespace saturate {

class StepTail {
  public:
    // The folder may appear later.
    explicit StepTail(std::filesystem::path folder) : folder_(std::move(folder)) {}

    // Returns the steps of the lines completed since the last call. Skips lines that are not steps,
    // which RunFollower reports. Times count from the start of the run.
    [[nodiscard]] std::vector<StepRecord> next();

  private:
    std::filesystem::path folder_;
    std::streamoff read_bytes_ = 0;
};

}  // namespace saturate
