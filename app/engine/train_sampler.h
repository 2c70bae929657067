// SPDX-License-Identifier: Apache-2.0
// Reads the counters of the training GPU and of the host once a second, in a separate thread, and
// writes them to the record of the run.
#pragma once

#include <memory>

#include "engine/device_backend.h"
#include "telemetry/gpu_tally.h"
#include "telemetry/recorder.h"

namespace saturate {

class TrainSampler {
  public:
    // Uses the counters of the device itself if it has some, else those of the driver.
    TrainSampler(Recorder& recorder, DeviceBackend& backend);
    ~TrainSampler();

    // Takes a last tick and stops. Returns how busy the GPU was according to these counters.
    BusyShare stop();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
