// SPDX-License-Identifier: Apache-2.0
// Helpers on python.json that both the findings and the search (tuning) use.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/diagnosis.h"

namespace saturate {

// Mean times per step in ns, over the steady steps.
struct MeanStep {
    double step = 0, wait = 0;
    std::int64_t n = 0;
    [[nodiscard]] double compute() const { return std::max(step - wait, 1.0); }
};

[[nodiscard]] MeanStep times_of(const RunRecord& record);

[[nodiscard]] std::string where_of(const Json& site);    // "train.py:12 (main)"
[[nodiscard]] Json training_loader(const Json& python);  // loader of the training steps, or null
[[nodiscard]] bool is_on_gpu(const Json& python);
// True if the workers of this loader may persist over epochs. False if the script makes a second
// iterator while the first is in use (torch then shares one, and the loop never ends), or if
// --apply found that training would change.
[[nodiscard]] bool may_persist(const Json& python, const Json& loader);
// Removes the advice to use persistent workers from the findings.
void advise_no_persistence(std::vector<Finding>& findings);

[[nodiscard]] Finding* found(std::vector<Finding>& findings,
                             std::string_view id);  // null if not there
[[nodiscard]] Gain gain_of(double likely, double bound);

// Explains why the training loop waits for its loader, with the line and the edit that fixes it.
void loader_findings(const RunRecord& record, const MeanStep& times,
                     std::vector<Finding>& findings);

}  // namespace saturate
