// SPDX-License-Identifier: Apache-2.0
// One measurement: settings in, an outcome out. The search asks for trials through a function;
// process/ passes one that starts a child process, so that a trial that runs out of memory or
// crashes cannot poison the next, and tests pass a model.
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
    bool without_loader = false;  // one batch again and again: the most that the loader can give
    double seconds = 10;          // measured time; ends earlier when the rate is known well
    double seconds_max = 600;     // from start to end, compiling included
    std::int64_t steps = 0;       // exactly so many instead, 0: by time
    bool again = false;           // measured anew, whatever is known from before
    double hopeless_below = 0;    // samples/s: a rate that stays below needs no more measuring
    bool with_pauses = false;     // a few steps with evaluations and checkpoints between them
    std::optional<std::uint64_t> seed;
};

// What may well happen is an outcome, not an error.
enum class TrialOutcome {
    ok,
    out_of_memory,
    out_of_host_memory,
    nonfinite,
    hang,
    too_slow,      // no rate within the time it was given
    not_in_force,  // it ran, but by its record not with what was asked for
    failed,
    not_run,  // the search is over
};
[[nodiscard]] std::string_view outcome_name(TrialOutcome outcome);  // "out of memory"

struct TrialResult {
    TrialOutcome outcome = TrialOutcome::ok;
    std::string message;  // why, unless ok
    std::optional<Rate> samples_per_second;
    std::optional<std::uint64_t> memory_peak_bytes;
    std::optional<std::uint64_t> memory_limit_bytes;  // of the device, where it is known
    double seconds = 0;                               // what the trial cost, start included
    bool from_cache = false;
    std::optional<std::int64_t> samples_per_epoch;
    RunRecord record;

    [[nodiscard]] bool ok() const {
        return outcome == TrialOutcome::ok && samples_per_second.has_value();
    }
};

// A job that fell back to what it did before did not try the setting: its trial failed.
void refuse_what_was_not_followed(TrialResult& result);

using RunTrial = std::function<TrialResult(const TrialRequest&)>;

}  // namespace saturate
