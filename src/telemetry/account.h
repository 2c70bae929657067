// SPDX-License-Identifier: Apache-2.0
// The one account of a run: how fast it was, how even, how busy, what it waited for and what
// stood between its steps. Made from every step, in bounded memory however long the run lasts.
// The live line of `train`, `run`, `report`, `serve`, `tune` and its proof all take their figures
// from here.
//
// A rate is samples over time, pauses left out. It is never a mean or median of single steps'
// rates: N workers deliver N batches at a time, so the median step did not wait at all.
// One thread.
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

// What training stood still for, told by events.
struct PauseSums {
    std::int64_t count = 0;
    double seconds = 0;
};

// What the steps came to so far.
struct Account {
    std::int64_t steps = 0;    // all, those that a profiler slowed down among them
    std::int64_t samples = 0;  // of all of them
    StepSums timed;            // all but those under a profiler
    StepSums steady;           // ... without the warm-up, where enough is left
    std::int64_t warm_up = 0;  // steps that were left out for it
    // Equal parts of the steady steps, a few dozen at most: the finest that is kept.
    std::vector<StepSums> parts;
    // Joined parts: each a second or more, and several rounds of the loader's workers.
    std::vector<StepSums> windows;
    std::optional<RunRate> samples_per_second;
    std::optional<double> step_p50_ms, step_p99_ms;
    std::optional<double> busy_percent, busy_deviation;  // by the steps' own count; over windows
    PauseSums evaluations, checkpoints;
    PauseSums restarts;                      // of the loader, at every epoch but the first
    std::int64_t first_ns = 0, last_ns = 0;  // start of the first step, end of the last

    [[nodiscard]] double pause_seconds() const { return evaluations.seconds + checkpoints.seconds; }
    // Steps, samples, rate, step times, busy share and shares of waiting; the rest is left alone.
    // A busy share that is there already comes from the device's counters and stays.
    void fill(RunSummary& summary) const;
};

class RunAccount {
  public:
    void add(const StepRecord& step);
    void add(const EventRecord& event);
    // Steps that a profiler slows down from now on are counted, but not timed.
    void set_disturbed(bool is_disturbed) { is_disturbed_ = is_disturbed; }
    [[nodiscard]] bool is_disturbed() const { return is_disturbed_; }

    [[nodiscard]] std::int64_t steps() const { return steps_; }
    [[nodiscard]] std::optional<double> step_ms() const;  // median
    // Sums of the steps since the last call: a line of a live log.
    [[nodiscard]] StepSums take_interval();
    [[nodiscard]] Account account() const;
    void fill(RunSummary& summary) const { account().fill(summary); }

  private:
    void time(const StepRecord& step, double seconds);
    [[nodiscard]] double with_gap(const StepRecord& step, std::int64_t next_start_ns) const;

    static constexpr std::size_t kMostBlocks = 256;
    static constexpr std::size_t kRecent = 32;

    std::vector<StepSums> blocks_;          // of `block_steps_` each; the last may be shorter
    std::int64_t block_steps_ = 1;          // doubles when there are too many
    std::vector<float> first_;              // lengths of the first steps, in ns ...
    LogHistogram later_;                    // ... and of those after them
    std::optional<StepRecord> waiting_;     // the last step: what follows tells how long it was
    std::array<double, kRecent> recent_{};  // lengths, in seconds
    StepSums timed_, interval_;
    std::int64_t steps_ = 0, samples_ = 0, first_ns_ = 0, last_ns_ = 0;
    PauseSums evaluations_, checkpoints_, restarts_;
    bool has_epoch_ = false;
    bool is_disturbed_ = false;
};

// The account of steps and events that are all there.
[[nodiscard]] Account account_of(std::span<const StepRecord> steps,
                                 std::span<const EventRecord> events = {});

// Where the steady part begins: the split of the times into a start and the rest that explains them
// best, taken only where it explains much. A start may be slow (compiling, first pages, starting
// workers) or fast (filling a queue).
[[nodiscard]] std::size_t steady_from(std::span<const double> seconds);

}  // namespace saturate
