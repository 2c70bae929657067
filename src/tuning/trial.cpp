// SPDX-License-Identifier: Apache-2.0
#include "tuning/trial.h"

namespace saturate {

std::string_view outcome_name(TrialOutcome outcome) {
    constexpr std::string_view kNames[] = {
        "ok",     "out of memory", "out of host memory", "loss is no number",
        "hang",   "too slow",      "not in force",       "failed",
        "not run"};
    return kNames[static_cast<int>(outcome)];
}

void refuse_what_was_not_followed(TrialResult& result) {
    constexpr std::string_view kRefused = "compile: not compiled: ";
    for (const EventRecord& event : result.record.events) {
        if (event.kind != EventKind::note || !event.text.starts_with(kRefused)) continue;
        result.outcome = TrialOutcome::failed;
        result.message = event.text.substr(kRefused.size());
    }
}

}  // namespace saturate
