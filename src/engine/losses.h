// SPDX-License-Identifier: Apache-2.0
// The losses of the last steps, kept on the device and read one interval late, so that reading them
// never holds up the host. Training thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "engine/device_backend.h"

namespace saturate {

struct ReadLosses {
    std::int64_t first_step = 0;
    std::vector<float> values;  // of consecutive steps
};

class LossLog {
  public:
    LossLog(DeviceBackend& backend, std::int64_t interval);

    void put(std::int64_t step, const torch::Tensor& loss);
    // Starts reading the losses put so far, and returns those that the previous
    // turn() started to read.
    [[nodiscard]] std::optional<ReadLosses> turn();
    [[nodiscard]] bool is_full() const { return count_ == slots_.size(); }
    // Returns all losses not returned yet, in order. Waits for the device.
    [[nodiscard]] std::vector<ReadLosses> drain();

  private:
    struct Pending {
        std::int64_t first_step = 0;
        std::size_t count = 0;
        std::unique_ptr<Reading> reading;
    };
    [[nodiscard]] static ReadLosses read(Pending& pending);
    void start();

    DeviceBackend& backend_;
    torch::Tensor ring_;                // one number per step of the interval
    std::vector<torch::Tensor> slots_;  // views of its elements
    std::size_t count_ = 0;
    std::int64_t first_step_ = 0;
    std::optional<Pending> pending_;
};

}  // namespace saturate
