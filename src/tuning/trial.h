// SPDX-License-Identifier: Apache-2.0
// One measurement: settings in, an outcome out. The search asks for trials through a function.
// process/ passes one that starts a child process, so that a trial that runs out of memory or
// crashes cannot harm the next one. Tests pass a model.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "config/assignment.h"
#include "telemetry/record_reader.h"
#include "tuning/rate.h"

namespace saturate {

struct TrialRequest {
    Assignment settings;
    bool without_loader = false;  // reuse one batch: the most that a better loader can give
    double seconds = 10;          // measured time; ends earlier once the rate is known well
    double seconds_max = 600;     // the whole run, including compiling
    std::int64_t steps = 0;       // exactly this many steps instead; 0: by time
    bool again = false;           // measure anew, do not use the cache
    double hopeless_below = 0;    // samples/s: stop a run whose rate stays below this
    bool with_pauses = false;     // a few steps, with evaluations and checkpoints in between
    std::optional<std::uint64_t> seed;
};

// Expected failures are outcomes, not errors.
enum class TrialOutcome {
    ok,
    out_of_memory,
    out_of_host_memory,
    nonfinite,
    hang,
    too_slow,      // no rate within the time limit
    not_in_force,  // it ran, but its record shows other settings than requested
    failed,
    not_run,  // the search is over
};
[[nodiscard]] std::string_view outcome_name(TrialOutcome outcome);  // "out of memory"

struct TrialResult {
    TrialOutcome outcome = TrialOutcome::ok;
    std::string message;  // why, unless the outcome is ok
    std::optional<Rate> samples_per_second;
    std::optional<std::uint64_t> memory_peak_bytes;
    std::optional<std::uint64_t> memory_limit_bytes;  // of the device, if known
    double seconds = 0;                               // cost of the trial, including its start
    bool from_cache = false;
    std::optional<std::int64_t> samples_per_epoch;
    RunRecord record;

    [[nodiscard]] bool ok() const {
        return outcome == TrialOutcome::ok && samples_per_second.has_value();
    }
};

// Turns the result into a failure if the job refused to compile and ran as before.
void refuse_what_was_not_followed(TrialResult& result);

using RunTrial = std::function<TrialResult(const TrialRequest&)>;

}  // namespace saturate
