// SPDX-License-Identifier: Apache-2.0
// The output of `run` at its end, as text and as JSON.
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
    std::string folder = {};  // where it ran: files below it are named from there
    RunSummary result;
    StepSums steps;   // of the first rank, without the warm-up
    Summary summary;  // seen from outside
    Diagnosis diagnosis;
    Json changes;                          // made by --apply, as in python.json
    std::vector<PermanentEdit> permanent;  // edits that make them permanent
    std::string torch;                     // version that a process imported, or empty
    bool is_limited = false;               // ended by --seconds or --steps
    std::vector<std::string> notes;
    std::vector<std::string> records;  // folders, that of the first rank first
    std::vector<RunRecord> ranks;      // if there are several
};

[[nodiscard]] std::string run_text(const RunAnswer& view);
[[nodiscard]] Json run_json(const RunAnswer& view);

}  // namespace saturate
