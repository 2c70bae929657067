// SPDX-License-Identifier: Apache-2.0
// What the findings and the search read out of python.json alike.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/diagnosis.h"

namespace saturate {

// Means per step, in ns, over the steady steps.
struct StepTimes {
    double step = 0, wait = 0;
    std::int64_t n = 0;
    [[nodiscard]] double compute() const { return std::max(step - wait, 1.0); }
};

[[nodiscard]] StepTimes times_of(const RunRecord& record);

[[nodiscard]] std::string where_of(const Json& site);    // "train.py:12 (main)"
[[nodiscard]] Json training_loader(const Json& python);  // that of the training steps; else null
[[nodiscard]] bool is_on_gpu(const Json& python);
// Whether workers of this loader may stay over epochs: not where a second iterator of it is made
// while the first is in use (torch shares one then, and the loop never ends), nor where --apply
// found that training would change.
[[nodiscard]] bool may_persist(const Json& python, const Json& loader);
// Takes persistent workers out of what findings advise.
void advise_no_persistence(std::vector<Finding>& findings);

[[nodiscard]] Finding* found(std::vector<Finding>& findings,
                             std::string_view id);  // null: not there
[[nodiscard]] Gain gain_of(double likely, double bound);

// Which loader waits and why, its line and the edit that mends it.
void loader_findings(const RunRecord& record, const StepTimes& times,
                     std::vector<Finding>& findings);

}  // namespace saturate
