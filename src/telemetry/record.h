// SPDX-License-Identifier: Apache-2.0
// The types of a run record (docs/run-record.md), which train, run and monitor write and which
// diagnose, report and tune read. Times are steady clock times in ns; in the files they count from
// the start of the run. An absent value is unknown, never 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace saturate {

constexpr int kRecordSchema = 1;

// One optimizer step as the host saw it. Copied as plain bytes: no string, no allocation.
struct StepRecord {
    std::int64_t step = 0;  // counts from 0 over the whole run
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
    std::optional<std::int64_t> samples;
    std::optional<std::int64_t> input_wait_ns;  // waiting for the next batch
    std::optional<std::int64_t> copy_ns;        // host to device
    std::optional<std::int64_t> forward_ns;
    std::optional<std::int64_t> backward_ns;
    std::optional<std::int64_t> optimizer_ns;
    std::optional<std::int64_t> communication_ns;        // exposed, not hidden behind backward
    std::optional<std::int64_t> communication_total_ns;  // exposed and hidden
    std::optional<std::int64_t> communication_bytes;     // sent by this rank ...
    std::optional<std::int64_t> collectives;             // ... in this many sums and broadcasts
    std::optional<std::int64_t> synchronisation_ns;      // the host waiting for the device
    std::optional<std::int64_t> log_ns;
    std::optional<std::int64_t> device_busy_ns;  // counted by the device (events, simulation)
    std::optional<std::int64_t> profiled;        // 1: a profiler slowed it down, so it does not
                                                 // count for rates and shares
    std::optional<double> loss;                  // only if it was read ...
    std::optional<std::int64_t> loss_step;       // ... and its step, if that is an earlier one
};

enum class EventKind {
    epoch,
    evaluation,
    checkpoint,
    out_of_memory,
    nonfinite_loss,
    bad_sample,
    throttle,
    worker_death,
    gpu_lost,
    note,
};
[[nodiscard]] std::string_view event_name(EventKind kind);  // "out_of_memory"
[[nodiscard]] std::optional<EventKind> event_kind(std::string_view name);

struct EventRecord {
    EventKind kind = EventKind::note;
    std::int64_t time_ns = 0;
    std::optional<std::int64_t> duration_ns;
    std::optional<std::int64_t> step;
    std::string text;  // one line for people
    Json values = {};  // an object of further facts, or null
};

struct RunInfo {
    std::string kind;                  // "train", "run", "monitor", "tune"
    std::vector<std::string> command;  // the command line
    std::string host;
    std::int64_t pid = 0;
    std::int64_t started_wall_ns = 0;
    std::int64_t started_ns = 0;  // steady clock; the times in the files count from it
    std::string device;           // "cuda:0", "cpu", "sim:H100 SXM"; empty: unknown
    bool simulated = false;
    int rank = 0;
    int world_size = 1;
    std::optional<std::int64_t> seed;
    std::string settings_text;                // text of the configuration used
    std::string settings_source;              // the file it came from
    std::optional<std::string> git_revision;  // of the user's project
    std::string version;                      // of saturate
    Json machine = {};                        // facts: GPUs, cores, memory
    Json extra = {};                          // what one kind of run adds
};

struct Spread {
    double median = 0;
    double low = 0;   // 5th percentile
    double high = 0;  // 95th percentile
    std::int64_t n = 0;
};

// Samples over time in the steady part of a run, without pauses (telemetry/account.h). The spread
// is that of windows of at least a second.
struct RunRate {
    double rate = 0;
    double median = 0;  // of the windows, ...
    double low = 0;     // ... their 5th percentile ...
    double high = 0;    // ... and their 95th
    std::int64_t n = 0;
};

struct RunSummary {
    std::int64_t duration_ns = 0;
    std::string ended = "done";  // done, interrupted, failed
    std::optional<int> exit_status;
    std::optional<std::int64_t> steps;
    std::optional<std::int64_t> samples;
    std::optional<RunRate> samples_per_second;
    std::optional<double> step_p50_ms;
    std::optional<double> step_p99_ms;
    std::optional<double> busy_percent;
    std::optional<double> busy_deviation;  // standard deviation, in points
    std::vector<std::pair<std::string, double>>
        stall_percent;  // share of step time: input_wait ...
    std::optional<std::uint64_t> memory_peak_bytes;
    std::optional<double> energy_joules;
    std::optional<double> mfu_percent;
    std::optional<double> loss_first, loss_last;
    std::string verdict;
    std::uint64_t dropped_steps = 0;  // not written, because the writer was too slow
    std::uint64_t dropped_events = 0;
    std::uint64_t dropped_samples = 0;
    Json extra = {};  // what one kind of run adds
};

}  // namespace saturate
