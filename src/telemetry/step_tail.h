// SPDX-License-Identifier: Apache-2.0
// The steps of a run record while it is being written: each call gives the new ones. One thread.
#pragma once

#include <filesystem>
#include <ios>
#include <vector>

#include "telemetry/record.h"

namespace saturate {

class StepTail {
  public:
    // The folder may come later.
    explicit StepTail(std::filesystem::path folder) : folder_(std::move(folder)) {}

    // Whole lines since the last call; half a line waits for its end. What is no step is passed
    // over: the record's reader tells about it. Times count from the start of the run.
    [[nodiscard]] std::vector<StepRecord> next();

  private:
    std::filesystem::path folder_;
    std::streamoff read_bytes_ = 0;
};

}  // namespace saturate
