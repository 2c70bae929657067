// SPDX-License-Identifier: Apache-2.0
// A simulated GPU from the table. The pipeline and the host's work are real; the device's time and
// memory come from sim_model.h. Device work is a time stamp on the real clock: a step ends at a
// computed moment, and whoever waits for it sleeps until then. Its name always says "simulated".
#pragma once

#include <memory>
#include <string>

#include "engine/device_backend.h"
#include "engine/sim_model.h"

namespace saturate {

// What the training step needs from a device that does not compute. Training thread.
class SimulatedStep {
  public:
    virtual ~SimulatedStep() = default;
    [[nodiscard]] virtual bool is_counted() const = 0;
    virtual void set_cost(StepCost cost, const SimSettings& settings) = 0;
    // Launches a step with this many samples: spends the host's time and queues the device's.
    // Throws c10::OutOfMemoryError if the step would not fit.
    virtual void launch(std::int64_t samples) = 0;
};

// `gpu` is a name given by the user. Throws UserError if the table does not have it.
[[nodiscard]] std::unique_ptr<DeviceBackend> make_sim_backend(const std::string& gpu,
                                                              const DeviceOptions& options);

}  // namespace saturate
