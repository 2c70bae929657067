// SPDX-License-Identifier: Apache-2.0
// Reads the GPU's and the host's counters once a second beside the training, into its record.
#pragma once

#include <memory>

#include "telemetry/recorder.h"

namespace saturate {

class TrainSampler {
  public:
    explicit TrainSampler(Recorder& recorder);
    ~TrainSampler();  // takes a last tick and stops

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
