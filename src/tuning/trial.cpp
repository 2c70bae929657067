// SPDX-License-Identifier: Apache-2.0
#include "tuning/trial.h"

namespace saturate {

std::string_view outcome_name(TrialOutcome outcome) {
    constexpr std::string_view kNames[] = {
        "ok",     "out of memory", "out of host memory", "loss is no number", "hang", "too slow",
        "failed", "not run"};
    return kNames[static_cast<int>(outcome)];
}

}  // namespace saturate
