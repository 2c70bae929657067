// SPDX-License-Identifier: Apache-2.0
// A GPU of the table that is not there. The pipeline and the host's own path are real; the device's
// time and memory come from sim_model.h. Kept as time stamps on the real clock: a step ends then
// and then, and who waits for it sleeps until that moment. Says "simulated" wherever it shows its
// name.
#pragma once

#include <memory>
#include <string>

#include "engine/device_backend.h"
#include "engine/sim_model.h"

namespace saturate {

// What the training step asks of a device that does not compute. Training thread.
class SimulatedStep {
  public:
    virtual ~SimulatedStep() = default;
    [[nodiscard]] virtual bool is_counted() const = 0;
    virtual void set_cost(StepCost cost, const SimSettings& settings) = 0;
    // Launches a step of so many samples: takes the host's time, queues the device's. Throws
    // c10::OutOfMemoryError when it would not fit.
    virtual void launch(std::int64_t samples) = 0;
};

// `gpu` as a user names it. Throws UserError for one that is not in the table.
[[nodiscard]] std::unique_ptr<DeviceBackend> make_sim_backend(const std::string& gpu,
                                                              const DeviceOptions& options);

}  // namespace saturate
