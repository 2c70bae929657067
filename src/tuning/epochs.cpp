// SPDX-License-Identifier: Apache-2.0
#include "tuning/epochs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "diagnosis/python_json.h"
#include "telemetry/statistics.h"

namespace saturate {

namespace {

constexpr int kFewestEpochs = 1;  // the pairs of the proof even out how single epochs vary ...
constexpr int kUsualEpochs = 2;   // ... but two epochs are better if there is time
constexpr int kMost = 200;
constexpr std::int64_t kWarmUp = 20;  // warm-up steps of a first epoch that is measured in part ...
constexpr std::int64_t kWarmUpShare = 5;  // ... or one step in this many, if that is less
// Runs of a change besides the proof: the change once and the settings before it twice.
constexpr int kTrials = 3;

// Indices in `record.steps` at which an epoch begins.
std::vector<std::size_t> starts_of(const RunRecord& record) {
    std::vector<std::size_t> out;
    for (const EventRecord& event : record.events) {
        if (event.kind != EventKind::epoch || !event.step) continue;
        auto at = std::ranges::lower_bound(record.steps, *event.step, {}, &StepRecord::step);
        if (at == record.steps.end()) break;
        auto place = static_cast<std::size_t>(at - record.steps.begin());
        if (out.empty() || place > out.back()) out.push_back(place);
    }
    return out;
}

double seconds_between(const RunRecord& record, std::size_t from, std::size_t to) {
    return static_cast<double>(record.steps[to].start_ns - record.steps[from].start_ns) / 1e9;
}

// Seconds from the loader's start to its first batch.
std::optional<double> first_start(const RunRecord& record, const std::vector<std::size_t>& starts) {
    if (starts.empty()) return std::nullopt;
    const StepRecord& step = record.steps[starts[0]];
    double out = static_cast<double>(step.input_wait_ns.value_or(0)) / 1e9;
    for (const EventRecord& event : record.events)
        if (event.kind == EventKind::epoch && event.step == step.step)
            out += static_cast<double>(event.duration_ns.value_or(0)) / 1e9;
    return out;
}

// Steps of an epoch by the loader's own figures, used if no epoch ended.
std::int64_t steps_by_loader(const Json& python) {
    Json loader = training_loader(python);
    auto samples = loader["dataset_size"].integer(), batch = loader["batch_size"].integer();
    if (!samples || !batch || *batch <= 0) return 0;
    std::int64_t whole = *samples / *batch;
    std::int64_t batches =
        loader["drop_last"].boolean().value_or(false) ? whole : (*samples + *batch - 1) / *batch;
    const Json& totals = python["totals"];
    double taken = totals["batches"].number().value_or(0);
    double each = taken > 0 ? totals["steps"].number().value_or(0) / taken : 1;
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(batches) * each));
}

}  // namespace

EpochTimes epoch_times(const RunRecord& record) {
    EpochTimes out;
    std::vector<std::size_t> starts = starts_of(record);
    std::size_t n = starts.size();
    out.start_most = first_start(record, starts);
    if (n < 2) {
        Account account = account_of(record);
        out.steps = steps_by_loader(record.python);
        out.seconds = static_cast<double>(out.steps) * account.steady.step_seconds();
        return out;
    }
    std::size_t first = n > 2 ? 1 : 0;  // the first epoch contains the warm-up
    auto count = static_cast<double>(n - 1 - first);
    out.steps = static_cast<std::int64_t>(
        std::lround(static_cast<double>(starts[n - 1] - starts[first]) / count));
    out.seconds = seconds_between(record, starts[first], starts[n - 1]) / count;
    out.seen = static_cast<int>(n - 2);

    std::int64_t from = record.steps[starts[first]].start_ns,
                 to = record.steps[starts[n - 1]].start_ns;
    double evaluation = 0, checkpoint = 0, start = 0;
    for (const EventRecord& event : record.events) {
        if (event.time_ns < from || event.time_ns >= to) continue;
        double seconds = static_cast<double>(event.duration_ns.value_or(0)) / 1e9;
        if (event.kind == EventKind::evaluation) evaluation += seconds;
        if (event.kind == EventKind::checkpoint) checkpoint += seconds;
        if (event.kind == EventKind::epoch) start += seconds;
    }
    // If workers start with the epoch, its first batch comes later than the others.
    std::vector<double> waits;
    for (const StepRecord& step : record.steps)
        waits.push_back(static_cast<double>(step.input_wait_ns.value_or(0)) / 1e9);
    double usual = median(waits);
    for (std::size_t i = first + 1; i < n; ++i) start += std::max(0.0, waits[starts[i]] - usual);
    out.evaluation = evaluation / count;
    out.checkpoint = checkpoint / count;
    out.start = start / count;
    return out;
}

void EpochPlan::shorten(int seen) {
    count = std::min(count, seen / unit * unit);
    lasts = 1.0 + count;
    if (count < kFewestEpochs) *this = {};
}

namespace {

// Seconds of all runs if each of them lasts `lasts` epochs.
double seconds_of_runs(const EpochTimes& epoch, double lasts, const TuneBudget& budget) {
    TuneBudget runs = budget;
    runs.measure_at_least(lasts * epoch.seconds);
    return (2 * kProofPairs + kTrials) * runs.proof_run_seconds();
}

}  // namespace

double budget_for_epochs(const EpochTimes& epoch, int count, const TuneBudget& budget,
                         double elapsed_seconds) {
    constexpr double kSlack = 1.25;  // runs with the same settings differ in length
    return elapsed_seconds +
           kSlack * seconds_of_runs(epoch, 1 + std::max(count, kUsualEpochs), budget);
}

EpochPlan plan_epochs(const EpochTimes& epoch, int interval, const TuneBudget& budget,
                      double elapsed_seconds) {
    if (epoch.steps == 0 || epoch.seconds <= 0) return {};
    double wanted = std::ceil(budget.trial_seconds() / epoch.seconds);
    int most = static_cast<int>(std::clamp<double>(wanted, kUsualEpochs, kMost));
    for (int unit : {interval, 1}) {
        for (int least = most; least >= kFewestEpochs; least /= 2) {
            int count = (least + unit - 1) / unit * unit;
            double needed = seconds_of_runs(epoch, 1 + count, budget);
            bool is_brief = (1 + count) * epoch.seconds <= budget.proof_seconds();
            if (is_brief || needed <= budget.seconds() - elapsed_seconds)
                return {.count = count,
                        .unit = unit,
                        .least_steps = (1 + count) * epoch.steps + 2,
                        .warm_up = 0,
                        .lasts = 1.0 + count};
        }
    }
    // Measures from a step in the first epoch to the same step in the second: one full epoch with
    // all its pauses.
    std::int64_t warm_up = std::clamp<std::int64_t>(epoch.steps / kWarmUpShare, 1, kWarmUp);
    double lasts = 1 + static_cast<double>(warm_up) / static_cast<double>(epoch.steps);
    if (epoch.steps < kWarmUpShare ||
        seconds_of_runs(epoch, lasts, budget) > budget.seconds() - elapsed_seconds)
        return {};
    return {.count = 1,
            .unit = 1,
            .least_steps = epoch.steps + warm_up + 2,
            .warm_up = warm_up,
            .lasts = lasts};
}

std::vector<std::int64_t> epoch_steps(const RunRecord& record) {
    std::vector<std::size_t> starts = starts_of(record);
    std::vector<std::int64_t> out;
    for (std::size_t i = 1; i < starts.size(); ++i)
        out.push_back(static_cast<std::int64_t>(starts[i] - starts[i - 1]));
    return out;
}

std::optional<double> rate_over_epochs(const RunRecord& record, const EpochPlan& plan) {
    std::vector<std::size_t> starts = starts_of(record);
    auto into = static_cast<std::size_t>(plan.warm_up), first = std::size_t{into == 0};
    std::size_t last = first + static_cast<std::size_t>(plan.count);
    if (plan.count < 1 || starts.size() <= last || starts[last] + into >= record.steps.size())
        return std::nullopt;
    std::size_t begin = starts[first] + into, end = starts[last] + into;
    double samples = 0, seconds = seconds_between(record, begin, end);
    for (std::size_t i = begin; i < end; ++i)
        samples += static_cast<double>(record.steps[i].samples.value_or(0));
    if (samples <= 0 || seconds <= 0) return std::nullopt;
    return samples / seconds;
}

}  // namespace saturate
