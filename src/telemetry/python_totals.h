// SPDX-License-Identifier: Apache-2.0
// Totals of a Python process from the records of its ring: batches, backward passes, optimizer
// steps, losses by step and batch sizes. In bounded memory. They go into python.json, which also
// serves to compare two runs of one script.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/json.h"
#include "telemetry/step_ring_layout.h"
#include "telemetry/thinned.h"

namespace saturate {

// Returns the loss of a training step, or nullopt if a backward pass in it has no known loss.
[[nodiscard]] std::optional<double> loss_of(const RingRecord& record);

class PythonTotals {
  public:
    void add(const RingRecord& record);
    // Sets totals, losses, batch_sizes and steps_by_loader of python.json.
    void put_into(Json& python) const;

  private:
    using Loss = std::pair<std::int64_t, double>;  // step, value
    void add_training(const RingRecord& record);

    static constexpr std::size_t kLosses = 64;
    std::int64_t steps_ = 0, batches_ = 0, backwards_ = 0, optimizer_steps_ = 0;
    std::int64_t losses_ = 0, not_finite_ = 0;
    std::map<std::uint32_t, std::int64_t> steps_by_loader_, without_step_;  // loader -> batches
    std::map<std::uint32_t, std::int64_t> sizes_;                           // samples -> steps
    std::vector<Loss> first_losses_;
    Thinned<Loss> later_losses_{kLosses};
    // The loader that started last, and its batches since then that had no training step.
    std::uint32_t started_ = ring::kNoLoader;
    std::int64_t since_start_ = 0;
};

}  // namespace saturate
