// SPDX-License-Identifier: Apache-2.0
#include "report/run_view.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/file.h"
#include "telemetry/gpu_tally.h"
#include "telemetry/record_json.h"
#include "telemetry/run_gather.h"

namespace saturate {

namespace {

// A point of a rate curve covers at least a second and, unless steps are slow, kPointSteps steps,
// because batches come several at a time.
constexpr double kPointSeconds = 1, kSlowPointSeconds = 10;
constexpr std::int64_t kPointSteps = 16;

bool is_a_point(const StepSums& sums) {
    return sums.seconds >= kPointSeconds &&
           (sums.steps >= kPointSteps || sums.seconds >= kSlowPointSeconds);
}

class Viewer {
  public:
    explicit Viewer(const std::filesystem::path& folder) {
        view_.folder = folder.string();
        view_.name = run_folder_name(folder);
        // The times in the lines are relative to this start, so read it before the first line.
        std::string head = read_if_there(folder / "run.json");
        if (!head.empty())
            start_ns_ = info_of(Json::parse(head, (folder / "run.json").string())).started_ns;
        follower_.emplace(
            folder, gather_.visitor({.step = [this](const StepRecord& step) { take(step); },
                                     .device = [this](const DeviceSample& sample) { take(sample); },
                                     .host = nullptr,
                                     .event = [this](const EventRecord& event) { take(event); }}));
    }

    RunView view(bool is_end) {
        RunRecord record = follower_->catch_up(is_end);
        view_.info = record.info;
        view_.summary = record.summary;
        view_.notes = record.notes;
        RunView out = view_;
        finish(std::move(record), is_end, out);
        return out;
    }
    [[nodiscard]] bool has_shrunk() const { return follower_->has_shrunk(); }

  private:
    // Returns the seconds since the start of the run.
    [[nodiscard]] double seconds_of(std::int64_t time_ns) {
        double seconds = std::max(0.0, static_cast<double>(time_ns - start_ns_) / 1e9);
        view_.seconds = std::max(view_.seconds, seconds);
        return seconds;
    }

    void take(const StepRecord& step) {
        double at = seconds_of(step.start_ns);
        double seconds = static_cast<double>(step.duration_ns) / 1e9;
        view_.seconds = std::max(view_.seconds, at + seconds);
        samples_ += step.samples.value_or(0);
        if (seconds > 0 && !step.profiled) {
            if (point_.steps == 0) point_start_ = at;
            point_.add(step, seconds);
            if (is_a_point(point_)) draw(std::exchange(point_, {}), view_);
        }
        if (step.loss && std::isfinite(*step.loss)) {
            view_.loss_by_time.add(at, *step.loss);
            view_.loss_by_samples.add(static_cast<double>(samples_), *step.loss);
            if (!view_.loss_first) view_.loss_first = step.loss;
            view_.loss_last = step.loss;
        }
    }

    void draw(const StepSums& point, RunView& view) const {
        if (auto rate = point.samples_per_second())
            view.rate.add(point_start_, *rate, point.sampled_seconds);
        if (auto busy = point.percent(StepPart::device_busy))
            view.step_busy.add(point_start_, *busy, point.seconds);
    }

    void take(const DeviceSample& sample) {
        double at = seconds_of(sample.time_ns);
        tallies_.try_emplace(sample.gpu, GpuIdentity{.index = sample.gpu})
            .first->second.add(sample, 1);
        auto found = std::ranges::find(view_.gpus, sample.gpu, &GpuCurves::gpu);
        if (found == view_.gpus.end()) {
            view_.gpus.push_back({.gpu = sample.gpu});
            found = std::prev(view_.gpus.end());
        }
        auto add = [&](Curve& curve, const std::optional<double>& value) {
            if (value) curve.add(at, *value);
        };
        add(found->utilisation, sample.utilization_percent);
        add(found->power, sample.power_watts);
        add(found->temperature, sample.temperature_celsius);
        if (sample.memory_used_bytes)
            found->memory.add(at, static_cast<double>(*sample.memory_used_bytes));
    }

    void take(const EventRecord& event) {
        view_.seconds = std::max(view_.seconds, seconds_of(event.time_ns));
        drawn_events_.add(event);
    }

    // Fills `out` from everything taken so far.
    void finish(RunRecord record, bool is_end, RunView& out) {
        record = gather_.fill(std::move(record));
        const Account& account = *record.account;
        if (point_.steps > 0 && (is_a_point(point_) || out.rate.buckets().empty()))
            draw(point_, out);
        out.steps = account.steps;
        out.samples = account.samples;
        out.samples_per_second = account.samples_per_second;
        out.step_p50_ms = account.step_p50_ms;
        out.step_p99_ms = account.step_p99_ms;
        out.busy_mean = account.busy_percent;
        out.busy_deviation = account.busy_deviation;
        take_devices(out);
        if (out.summary) take_summary(*out.summary, out);
        double known = 0;
        for (std::size_t i = 0; i < kHostParts; ++i) {
            auto part = static_cast<StepPart>(i);
            auto percent = account.steady.percent(part);
            if (!percent) continue;
            out.split.emplace_back(part_name(part), *percent);
            known += *percent;
        }
        if (!out.split.empty() && known < 100) out.split.emplace_back("other", 100 - known);
        for (const Json& gpu : out.info.machine["gpus"].items()) {
            for (GpuCurves& curves : out.gpus) {
                if (gpu["gpu"].integer() == curves.gpu)
                    curves.name = gpu["name"].string().value_or("");
            }
        }
        out.events = drawn_events_.values();
        out.events_left_out = drawn_events_.seen() - static_cast<std::int64_t>(out.events.size());
        for (EventRecord& event : out.events) event.time_ns -= start_ns_;
        // The other ranks and the trace are complete only at the end.
        out.diagnosis = is_end ? diagnose_run_folder(out.folder, std::move(record))
                               : diagnose_run(record, out.folder);
    }

    // Figures of the driver take precedence over those that the job counted itself.
    void take_devices(RunView& out) const {
        std::vector<GpuSummary> gpus;
        Running power;
        for (const auto& [index, tally] : tallies_) {
            const GpuSummary& gpu = gpus.emplace_back(tally.summary());
            if (gpu.power_mean_watts) power.add(*gpu.power_mean_watts);
            if (gpu.energy_joules)
                out.energy_joules = out.energy_joules.value_or(0) + *gpu.energy_joules;
            if (gpu.memory_peak_bytes)
                out.memory_peak_bytes =
                    std::max(out.memory_peak_bytes.value_or(0), *gpu.memory_peak_bytes);
        }
        out.power_mean_watts = power.mean();
        BusyShare busy = busy_share(gpus);
        if (!busy.percent) return;
        out.busy_mean = busy.percent;
        out.busy_deviation = busy.deviation;
    }

    // The writer of the summary saw every step and reading, but some lines may have been dropped.
    static void take_summary(const RunSummary& summary, RunView& out) {
        auto take = [](std::optional<double>& here, const std::optional<double>& told) {
            if (told) here = told;
        };
        take(out.energy_joules, summary.energy_joules);
        if (!out.memory_peak_bytes && summary.memory_peak_bytes)
            out.memory_peak_bytes = static_cast<double>(*summary.memory_peak_bytes);
        if (summary.dropped_samples > 0) {
            take(out.busy_mean, summary.busy_percent);
            take(out.busy_deviation, summary.busy_deviation);
        }
        if (summary.dropped_steps == 0) return;
        out.steps = summary.steps.value_or(out.steps);
        out.samples = summary.samples.value_or(out.samples);
        if (summary.samples_per_second) out.samples_per_second = summary.samples_per_second;
        take(out.step_p50_ms, summary.step_p50_ms);
        take(out.step_p99_ms, summary.step_p99_ms);
    }

    RunView view_;  // the parts that only grow
    RunGather gather_;
    std::optional<RunFollower> follower_;
    std::int64_t start_ns_ = 0, samples_ = 0;
    Thinned<EventRecord> drawn_events_{300};
    StepSums point_;  // the next point of the curves
    double point_start_ = 0;
    std::map<int, GpuTally> tallies_;
};

}  // namespace

void Curve::add(double x, double y, double weight) {
    if (!(x >= 0) || !std::isfinite(y) || !(weight > 0)) return;
    while (x >= width_ * static_cast<double>(kMost)) {
        width_ *= 2;
        std::vector<Bucket> half((buckets_.size() + 1) / 2);
        for (std::size_t i = 0; i < buckets_.size(); ++i) {
            const Bucket& from = buckets_[i];
            Bucket& to = half[i / 2];
            if (from.n == 0) continue;
            to.least = to.n > 0 ? std::min(to.least, from.least) : from.least;
            to.most = to.n > 0 ? std::max(to.most, from.most) : from.most;
            to.sum += from.sum;
            to.weight += from.weight;
            to.n += from.n;
        }
        buckets_ = std::move(half);
    }
    auto at = static_cast<std::size_t>(x / width_);
    if (buckets_.size() <= at) buckets_.resize(at + 1);
    Bucket& bucket = buckets_[at];
    bucket.least = bucket.n > 0 ? std::min(bucket.least, y) : y;
    bucket.most = bucket.n > 0 ? std::max(bucket.most, y) : y;
    bucket.sum += weight * y;
    bucket.weight += weight;
    ++bucket.n;
}

std::optional<double> RunView::joules_per_1000_samples() const {
    if (!energy_joules || samples <= 0) return std::nullopt;
    return *energy_joules * 1000 / static_cast<double>(samples);
}

std::string run_folder_name(const std::filesystem::path& folder) {
    std::error_code ignored;
    std::filesystem::path whole = std::filesystem::weakly_canonical(folder, ignored);
    if (!whole.has_filename()) whole = whole.parent_path();
    return whole.empty() ? folder.string() : whole.filename().string();
}

RunView view_run(const std::filesystem::path& folder) { return Viewer(folder).view(true); }

struct RunViewer::Impl {
    explicit Impl(const std::filesystem::path& folder) : viewer(folder) {}
    Viewer viewer;
};

RunViewer::RunViewer(const std::filesystem::path& folder) : impl_(std::make_unique<Impl>(folder)) {}
RunViewer::~RunViewer() = default;
RunView RunViewer::view(bool is_end) { return impl_->viewer.view(is_end); }
bool RunViewer::has_shrunk() const { return impl_->viewer.has_shrunk(); }

}  // namespace saturate
