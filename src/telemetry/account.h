// SPDX-License-Identifier: Apache-2.0
// All figures on the speed of a run: rate, spread, busy time, waits, and pauses between steps.
// Computed from every step in bounded memory, however long the run lasts.
// The live line of `train`, `run`, `report`, `serve`, `tune` and its proof all take their figures
// from here.
//
// A rate is samples over time without pauses. It is never the mean or median of the rates of single
// steps: N workers deliver N batches at a time, so the median step does not wait at all.
// Used from one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "telemetry/record.h"
#include "telemetry/statistics.h"
#include "telemetry/step_sums.h"

namespace saturate {

// Pauses of the training of one kind, from the events.
struct PauseSums {
    std::int64_t count = 0;
    double seconds = 0;
};

// The figures of the steps so far.
struct Account {
    std::int64_t steps = 0;    // all, including those that a profiler slowed down
    std::int64_t samples = 0;  // of all these steps
    StepSums timed;            // all steps except those under a profiler
    StepSums steady;           // ... without the warm-up, if enough is left
    std::int64_t warm_up = 0;  // steps left out as warm-up
    // Equal parts of the steady steps, at most 256: the finest resolution that is kept.
    std::vector<StepSums> parts;
    // Joined parts: each takes at least a second and several rounds of the loader's workers.
    std::vector<StepSums> windows;
    std::optional<RunRate> samples_per_second;
    std::optional<double> step_p50_ms, step_p99_ms;
    std::optional<double> busy_percent, busy_deviation;  // from the steps; deviation of the windows
    PauseSums evaluations, checkpoints;
    PauseSums restarts;                      // of the loader, in each epoch but the first
    std::int64_t first_ns = 0, last_ns = 0;  // start of the first step, end of the last

    [[nodiscard]] double pause_seconds() const { return evaluations.seconds + checkpoints.seconds; }
    // Sets steps, samples, rate, step times, busy share and waiting shares; leaves the rest alone.
    // Keeps a busy share that is already set, because it comes from the device's counters.
    void fill(RunSummary& summary) const;
};

class RunAccount {
  public:
    void add(const StepRecord& step);
    void add(const EventRecord& event);
    // While set, a profiler slows the steps down: they are counted but not timed.
    void set_disturbed(bool is_disturbed) { is_disturbed_ = is_disturbed; }
    [[nodiscard]] bool is_disturbed() const { return is_disturbed_; }

    [[nodiscard]] std::int64_t steps() const { return steps_; }
    [[nodiscard]] std::optional<double> step_ms() const;  // median
    // Returns the sums of the steps since the last call, for a line of the live log.
    [[nodiscard]] StepSums take_interval();
    [[nodiscard]] Account account() const;
    void fill(RunSummary& summary) const { account().fill(summary); }

  private:
    void time(const StepRecord& step, double seconds);
    [[nodiscard]] double with_gap(const StepRecord& step, std::int64_t next_start_ns) const;

    static constexpr std::size_t kMostBlocks = 256;
    static constexpr std::size_t kRecent = 32;

    std::vector<StepSums> blocks_;          // `block_steps_` steps each; the last may have fewer
    std::int64_t block_steps_ = 1;          // doubles when there are too many blocks
    std::vector<float> first_;              // lengths of the first steps, in ns ...
    LogHistogram later_;                    // ... and of those after them
    std::optional<StepRecord> waiting_;     // the last step: its length depends on the next
    std::array<double, kRecent> recent_{};  // lengths, in seconds
    StepSums timed_, interval_;
    std::int64_t steps_ = 0, samples_ = 0, first_ns_ = 0, last_ns_ = 0;
    PauseSums evaluations_, checkpoints_, restarts_;
    bool has_epoch_ = false;
    bool is_disturbed_ = false;
};

// Returns the account of complete lists of steps and events.
[[nodiscard]] Account account_of(std::span<const StepRecord> steps,
                                 std::span<const EventRecord> events = {});

// Returns the index where the steady part begins: the split into a start and a rest that explains
// the times best, or 0 if no split explains much. A start may be slow (compiling, first pages,
// starting workers) or fast (filling a queue).
[[nodiscard]] std::size_t steady_from(std::span<const double> seconds);

}  // namespace saturate
