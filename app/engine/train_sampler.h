// SPDX-License-Identifier: Apache-2.0
// Reads the counters of the GPU that trains and of the host once a second beside the training, into
// its record.
#pragma once

#include <memory>

#include "engine/device_backend.h"
#include "telemetry/gpu_tally.h"
#include "telemetry/recorder.h"

namespace saturate {

class TrainSampler {
  public:
    // From the device's own counters where it has some, else from the driver's.
    TrainSampler(Recorder& recorder, DeviceBackend& backend);
    ~TrainSampler();

    // Takes a last tick and stops: how busy the GPU was meanwhile, by these counters.
    BusyShare stop();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
