// SPDX-License-Identifier: Apache-2.0
// What the steps of a Python process add up to: batches, backwards and optimizer steps, losses by
// step and sizes of batches, from the records of its ring. In bounded memory. For python.json; two
// runs of one script are compared by it.
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

// The loss of a training step; nothing where it is not known of every backward in it.
[[nodiscard]] std::optional<double> loss_of(const RingRecord& record);

class PythonTotals {
  public:
    void add(const RingRecord& record);
    // totals, losses, batch_sizes and steps_by_loader of python.json.
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
    // The loader that started last, and its batches without a step since then.
    std::uint32_t started_ = ring::kNoLoader;
    std::int64_t since_start_ = 0;
};

}  // namespace saturate
