// SPDX-License-Identifier: Apache-2.0
// What run says at its end, for people and as JSON.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/diagnosis.h"
#include "diagnosis/permanent.h"
#include "telemetry/record_reader.h"
#include "telemetry/step_sums.h"
#include "telemetry/summary.h"

namespace saturate {

struct RunAnswer {
    std::vector<std::string> command;
    RunSummary result;
    StepSums steps;   // of the first rank, without the warm-up
    Summary summary;  // from outside
    Diagnosis diagnosis;
    Json changes;                          // of --apply, as python.json has them
    std::vector<PermanentEdit> permanent;  // that would make them last
    std::string torch;                     // the version that a process imported; empty: none did
    std::vector<std::string> notes;
    std::vector<std::string> records;  // folders, the first rank's first
    std::vector<RunRecord> ranks;      // where there are several
};

[[nodiscard]] std::string run_text(const RunAnswer& view);
[[nodiscard]] Json run_json(const RunAnswer& view);

}  // namespace saturate
