// SPDX-License-Identifier: Apache-2.0
#include "telemetry/account.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace saturate {

namespace {

constexpr double kWarmUpDiffers = 1.1;   // a start must differ by at least a tenth
constexpr double kFastStart = 0.25;      // of the steps: a faster start must end by then
constexpr double kExplained = 0.5;       // share of the variation that the split must explain
constexpr std::size_t kFirstSteps = 8;   // one of these may compile ...
constexpr double kFarLonger = 3;         // ... and takes this many times as long as any later one
constexpr std::size_t kLeastSteady = 4;  // steps
constexpr std::size_t kLeastLong = 2;    // of kLongSeconds each: chance evens out within one
constexpr double kLongSeconds = 0.5;

constexpr double kWindowSeconds = 1;
constexpr double kRounds = 4;     // rounds of the workers in a window
constexpr double kLonger = 1.05;  // than the mean: such a part ends a round of the workers
// A gap between two steps is part of their cost; from this share of a step on it is a pause.
constexpr double kPause = 0.5;
// Busy time is known if at least this share of the steps has it.
constexpr double kMostTold = 0.9;
// A step waits for its batch if it waits for at least this share of the mean wait ...
constexpr double kWaited = 0.5;
// ... and the loader is too slow if waiting takes at least this share of the time.
constexpr double kLoaderBehind = 0.03;

double seconds_of(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

// Returns the index after the last of the first steps that is far longer than all later ones, or 0.
// Needed because if batches come several at a time, such a step explains little of the variation.
std::size_t behind_far_longer(std::span<const double> seconds) {
    double longest = 0;
    for (std::size_t i = seconds.size(); i > 0; --i) {
        bool is_first = i <= kFirstSteps && i + kLeastSteady <= seconds.size();
        if (is_first && seconds[i - 1] > kFarLonger * longest) return i;
        longest = std::max(longest, seconds[i - 1]);
    }
    return 0;
}

// True if the first step computed far longer than any other step took: it compiled. One that waited
// for its batch may be as long as others to come.
bool has_compiled_first(std::span<const StepSums> blocks) {
    if (blocks.size() < 2) return false;
    double longest = 0;
    for (const StepSums& block : blocks.subspan(1))
        longest = std::max(longest, block.step_seconds());
    const StepSums& first = blocks.front();
    return first.seconds - first.sum(StepPart::input_wait) >
           kFarLonger * longest * static_cast<double>(first.steps);
}

std::size_t least_steady(std::span<const double> seconds) {
    return median({seconds.begin(), seconds.end()}) >= kLongSeconds ? kLeastLong : kLeastSteady;
}

std::optional<double> busy_percent(const StepSums& sums) {
    std::int64_t told = sums.told(StepPart::device_busy);
    if (told == 0 || sums.seconds <= 0 ||
        static_cast<double>(told) < kMostTold * static_cast<double>(sums.steps))
        return std::nullopt;
    double each = sums.sum(StepPart::device_busy) / static_cast<double>(told);
    return std::min(100.0, 100 * each / sums.step_seconds());
}

// Returns how many parts a round of the loader takes. N workers deliver N batches at a time: one
// step waits and N - 1 steps find their batches ready.
double parts_per_round(std::span<const StepSums> parts, double mean_seconds) {
    auto longer = std::ranges::count_if(
        parts, [&](const StepSums& part) { return part.step_seconds() > kLonger * mean_seconds; });
    return longer > 0 ? static_cast<double>(parts.size()) / static_cast<double>(longer) : 1;
}

// Moves the start behind steps whose batches were ready because the loader's workers kept loading
// during a slow warm-up (such as compiling). These steps count as warm-up if there are more of them
// in a row than later. If the loader keeps up, no step waits and nothing is left out.
std::size_t behind_ready_batches(std::span<const StepSums> blocks, std::size_t from) {
    if (from == 0) return from;
    StepSums rest;
    for (const StepSums& block : blocks.subspan(from)) rest.add(block);
    if (rest.percent(StepPart::input_wait).value_or(0) < 100 * kLoaderBehind) return from;
    double mean = rest.sum(StepPart::input_wait) / static_cast<double>(rest.steps);
    std::size_t first = 0, last = 0, longest = 0, waits = 0;
    for (std::size_t i = from; i < blocks.size(); ++i) {
        double each = blocks[i].sum(StepPart::input_wait) / static_cast<double>(blocks[i].steps);
        if (each < kWaited * mean) continue;
        if (waits++ == 0)
            first = i;
        else
            longest = std::max(longest, i - last);
        last = i;
    }
    bool is_known = waits >= 3 && blocks.size() - first >= kLeastSteady;
    return is_known && first - from >= longest ? first : from;
}

std::vector<StepSums> windows_of(std::span<const StepSums> parts, double mean_seconds) {
    double least = std::ceil(kRounds * parts_per_round(parts, mean_seconds));
    std::vector<StepSums> out;
    StepSums open;
    double joined = 0;
    for (const StepSums& part : parts) {
        open.add(part);
        if (++joined < least || open.seconds < kWindowSeconds) continue;
        out.push_back(std::exchange(open, {}));
        joined = 0;
    }
    if (open.steps == 0) return out;
    if (out.empty())
        out.push_back(open);
    else
        out.back().add(open);
    return out;
}

}  // namespace

std::size_t steady_from(std::span<const double> seconds) {
    // Uses logarithms, so that one long pause does not outweigh a hundred steps, and prefix sums,
    // so that every split takes constant time.
    std::size_t n = seconds.size();
    if (n < 2 * kLeastSteady) return n > least_steady(seconds) ? 1 : 0;
    std::vector<double> sum(n + 1), square(n + 1);
    for (std::size_t i = 0; i < n; ++i) {
        double value = std::log(std::max(seconds[i], 1e-9));
        sum[i + 1] = sum[i] + value;
        square[i + 1] = square[i] + value * value;
    }
    auto variation = [&](std::size_t from, std::size_t to) {
        double count = static_cast<double>(to - from);
        double total = sum[to] - sum[from];
        return square[to] - square[from] - total * total / count;
    };
    std::size_t start = behind_far_longer(seconds);
    // A second change may follow the first, such as filling caches after compiling.
    for (int turn = 0; turn < 3; ++turn) {
        double whole = variation(start, n);
        std::size_t best = start;
        double least = whole;
        for (std::size_t split = start + 1;
             split + kLeastSteady <= n && split <= start + (n - start) / 2; ++split) {
            double both = variation(start, split) + variation(split, n);
            if (both < least) {
                least = both;
                best = split;
            }
        }
        if (best == start || whole <= 0 || least > (1 - kExplained) * whole) break;
        double before = (sum[best] - sum[start]) / static_cast<double>(best - start);
        double after = (sum[n] - sum[best]) / static_cast<double>(n - best);
        if (std::abs(before - after) < std::log(kWarmUpDiffers)) break;
        // Steps are fast at first while they fill the device's queue or find batches ready. If that
        // lasts long, the job itself is getting slower.
        auto most = static_cast<std::size_t>(kFastStart * static_cast<double>(n - start));
        if (before < after && best - start > most) break;
        start = best;
    }
    return start;
}

void RunAccount::add(const StepRecord& step) {
    if (steps_++ == 0) first_ns_ = step.start_ns;
    last_ns_ = std::max(last_ns_, step.start_ns + step.duration_ns);
    samples_ += step.samples.value_or(0);
    bool is_timed = !is_disturbed_ && !step.profiled && step.duration_ns > 0;
    if (waiting_) {
        std::optional<StepRecord> last = std::exchange(waiting_, std::nullopt);
        time(*last, with_gap(*last, is_timed ? step.start_ns : 0));
    }
    if (!is_timed) return;
    waiting_ = step;
    interval_.add(step, seconds_of(step.duration_ns));
}

// Returns the time up to the start of the next step, unless there was a pause in between.
double RunAccount::with_gap(const StepRecord& step, std::int64_t next_start_ns) const {
    double own = seconds_of(step.duration_ns);
    double gap = seconds_of(next_start_ns - step.start_ns) - own;
    auto known = static_cast<std::size_t>(
        std::min<std::int64_t>(timed_.steps, static_cast<std::int64_t>(kRecent)));
    double usual = own;
    for (std::size_t i = 0; i < known; ++i) usual += recent_[i];
    usual /= static_cast<double>(known + 1);
    return gap > 0 && gap < kPause * std::max(own, usual) ? own + gap : own;
}

void RunAccount::time(const StepRecord& step, double seconds) {
    recent_[static_cast<std::size_t>(timed_.steps) % kRecent] = seconds_of(step.duration_ns);
    timed_.add(step, seconds);
    if (first_.size() < kMostBlocks)
        first_.push_back(static_cast<float>(step.duration_ns));
    else
        later_.add(static_cast<double>(step.duration_ns));
    if (blocks_.empty() || blocks_.back().steps >= block_steps_) {
        if (blocks_.size() == kMostBlocks) {
            for (std::size_t i = 0; i < kMostBlocks / 2; ++i) {
                StepSums pair = blocks_[2 * i];
                pair.add(blocks_[2 * i + 1]);
                blocks_[i] = pair;
            }
            blocks_.resize(kMostBlocks / 2);
            block_steps_ *= 2;
        }
        blocks_.emplace_back();
    }
    blocks_.back().add(step, seconds);
}

void RunAccount::add(const EventRecord& event) {
    auto add_to = [&](PauseSums& sums) {
        ++sums.count;
        sums.seconds += seconds_of(event.duration_ns.value_or(0));
    };
    if (event.kind == EventKind::evaluation) add_to(evaluations_);
    // An event with a path comes from the thread that writes, during which training continues.
    if (event.kind == EventKind::checkpoint && !event.values["path"].string()) add_to(checkpoints_);
    if (event.kind == EventKind::epoch && std::exchange(has_epoch_, true)) add_to(restarts_);
}

StepSums RunAccount::take_interval() { return std::exchange(interval_, {}); }

std::optional<double> RunAccount::step_ms() const {
    if (later_.n() > static_cast<std::int64_t>(first_.size())) return *later_.quantile(0.5) / 1e6;
    if (first_.empty()) return std::nullopt;
    return median({first_.begin(), first_.end()}) / 1e6;
}

Account RunAccount::account() const {
    if (waiting_) {
        RunAccount whole = *this;
        whole.waiting_.reset();
        whole.time(*waiting_, seconds_of(waiting_->duration_ns));
        return whole.account();
    }
    Account out{.steps = steps_,
                .samples = samples_,
                .timed = timed_,
                .evaluations = evaluations_,
                .checkpoints = checkpoints_,
                .restarts = restarts_,
                .first_ns = first_ns_,
                .last_ns = last_ns_};
    std::vector<double> seconds;
    for (const StepSums& block : blocks_) seconds.push_back(block.step_seconds());
    std::size_t from = behind_ready_batches(blocks_, steady_from(seconds));
    if (from == 0 && has_compiled_first(blocks_)) from = 1;  // of too few steps to split
    for (std::size_t i = 0; i < from; ++i) out.warm_up += blocks_[i].steps;
    out.parts.assign(blocks_.begin() + static_cast<std::ptrdiff_t>(from), blocks_.end());
    for (const StepSums& part : out.parts) out.steady.add(part);
    out.windows = windows_of(out.parts, out.steady.step_seconds());

    if (auto rate = out.steady.samples_per_second()) {
        std::vector<double> rates;
        for (const StepSums& window : out.windows) {
            if (auto each = window.samples_per_second()) rates.push_back(*each);
        }
        out.samples_per_second = RunRate{.rate = *rate,
                                         .median = median(rates),
                                         .low = quantile(rates, 0.05),
                                         .high = quantile(rates, 0.95),
                                         .n = static_cast<std::int64_t>(rates.size())};
    }
    std::size_t warm = std::min(first_.size(), static_cast<std::size_t>(out.warm_up));
    std::span<const float> head = std::span(first_).subspan(warm);
    if (later_.n() == 0 && !head.empty()) {
        out.step_p50_ms = quantile({head.begin(), head.end()}, 0.5) / 1e6;
        out.step_p99_ms = quantile({head.begin(), head.end()}, 0.99) / 1e6;
    } else if (later_.n() > 0) {
        LogHistogram lengths = later_;
        for (float length : head) lengths.add(length);
        out.step_p50_ms = *lengths.quantile(0.5) / 1e6;
        out.step_p99_ms = *lengths.quantile(0.99) / 1e6;
    }
    out.busy_percent = saturate::busy_percent(out.steady);
    Running busy;
    for (const StepSums& window : out.windows) {
        if (auto percent = saturate::busy_percent(window)) busy.add(*percent, window.seconds);
    }
    if (busy.n() > 1) out.busy_deviation = busy.deviation();
    return out;
}

void Account::fill(RunSummary& summary) const {
    summary.steps = steps;
    if (samples > 0) summary.samples = samples;
    summary.samples_per_second = samples_per_second;
    summary.step_p50_ms = step_p50_ms;
    summary.step_p99_ms = step_p99_ms;
    if (!summary.busy_percent) {
        summary.busy_percent = busy_percent;
        summary.busy_deviation = busy_deviation;
    }
    for (StepPart part : {StepPart::input_wait, StepPart::copy, StepPart::communication,
                          StepPart::synchronisation, StepPart::log}) {
        if (auto share = steady.percent(part))
            summary.stall_percent.emplace_back(part_name(part), *share);
    }
}

Account account_of(std::span<const StepRecord> steps, std::span<const EventRecord> events) {
    RunAccount account;
    for (const StepRecord& step : steps) account.add(step);
    for (const EventRecord& event : events) account.add(event);
    return account.account();
}

}  // namespace saturate
