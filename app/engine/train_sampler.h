// SPDX-License-Identifier: Apache-2.0
// Reads the GPU's and the host's counters once a second beside the training, into its record.
#pragma once

#include <memory>

#include "telemetry/recorder.h"

namespace saturate {

class TrainSampler {
  public:
    // `counters` stand for the driver's where the device has its own; null: the driver's.
    TrainSampler(Recorder& recorder, std::unique_ptr<DeviceReader> counters);
    ~TrainSampler();  // takes a last tick and stops

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
