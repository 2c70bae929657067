// SPDX-License-Identifier: Apache-2.0
#include "report/run_view.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "telemetry/record_json.h"
#include "telemetry/record_reader.h"
#include "telemetry/statistics.h"

namespace saturate {

namespace {

// Every value at first; when the list is full every other one is dropped, and from then on only
// every second, fourth ... value is taken. What is left lies evenly over the run.
template <typename T>
class Thinned {
  public:
    explicit Thinned(std::size_t most) : most_(most) {}
    void add(const T& value) {
        if (seen_++ % stride_ != 0) return;
        kept.push_back(value);
        if (kept.size() < most_) return;
        std::size_t out = 0;
        for (std::size_t i = 0; i < kept.size(); i += 2) {
            if (out != i) kept[out] = std::move(kept[i]);
            ++out;
        }
        kept.resize(out);
        stride_ *= 2;
    }
    [[nodiscard]] std::int64_t left_out() const {
        return seen_ - static_cast<std::int64_t>(kept.size());
    }
    std::vector<T> kept;

  private:
    std::size_t most_;
    std::int64_t stride_ = 1;
    std::int64_t seen_ = 0;
};

struct Phase {
    const char* name;
    std::optional<std::int64_t> StepRecord::*time;
};
constexpr Phase kPhases[] = {{"input_wait", &StepRecord::input_wait_ns},
                             {"copy", &StepRecord::copy_ns},
                             {"forward", &StepRecord::forward_ns},
                             {"backward", &StepRecord::backward_ns},
                             {"optimizer", &StepRecord::optimizer_ns},
                             {"communication", &StepRecord::communication_ns},
                             {"synchronisation", &StepRecord::synchronisation_ns},
                             {"log", &StepRecord::log_ns}};

double quantile(std::vector<float>& values, double share) {
    auto at = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1));
    std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(at));
    return values[at];
}

class Viewer {
  public:
    explicit Viewer(const std::filesystem::path& folder) {
        view_.folder = folder.string();
        view_.name = run_folder_name(folder);
        // The times of the lines need the start before the first of them comes.
        std::string head = read_if_there(folder / "run.json");
        if (!head.empty())
            start_ns_ = info_of(Json::parse(head, (folder / "run.json").string())).started_ns;
        follower_.emplace(
            folder, RunVisitor{.step = [this](const StepRecord& step) { take(step); },
                               .device = [this](const DeviceSample& sample) { take(sample); },
                               .host = [this](const HostSample& sample) { hosts_.add(sample); },
                               .event = [this](const EventRecord& event) { take(event); }});
    }

    RunView view(bool is_end) {
        RunRecord record = follower_->catch_up(is_end);
        view_.info = record.info;
        view_.summary = record.summary;
        view_.notes = record.notes;
        RunView out = view_;
        finish(std::move(record), out);
        return out;
    }
    [[nodiscard]] bool has_shrunk() const { return follower_->has_shrunk(); }

  private:
    // Since the start of the run.
    [[nodiscard]] double seconds_of(std::int64_t time_ns) {
        double seconds = std::max(0.0, static_cast<double>(time_ns - start_ns_) / 1e9);
        view_.seconds = std::max(view_.seconds, seconds);
        return seconds;
    }

    void take(const StepRecord& step) {
        steps_.add(step);
        double at = seconds_of(step.start_ns);
        double seconds = static_cast<double>(step.duration_ns) / 1e9;
        view_.seconds = std::max(view_.seconds, at + seconds);
        ++view_.steps;
        if (seconds <= 0) return;
        durations_.push_back(static_cast<float>(seconds));
        total_ns_ += static_cast<double>(step.duration_ns);
        if (step.samples) {
            double rate = static_cast<double>(*step.samples) / seconds;
            view_.samples += *step.samples;
            view_.rate.add(at, rate);
            rates_.push_back(static_cast<float>(rate));
        }
        for (std::size_t i = 0; i < std::size(kPhases); ++i) {
            if (auto ns = step.*kPhases[i].time) {
                phase_ns_[i] += static_cast<double>(*ns);
                phase_known_[i] = true;
            }
        }
        if (step.device_busy_ns) {
            double busy = 100 * std::min(1.0, static_cast<double>(*step.device_busy_ns) /
                                                  static_cast<double>(step.duration_ns));
            view_.step_busy.add(at, busy);
            step_busy_.add(busy, seconds);
        }
        if (step.loss && std::isfinite(*step.loss)) {
            view_.loss_by_time.add(at, *step.loss);
            view_.loss_by_samples.add(static_cast<double>(view_.samples), *step.loss);
            if (!view_.loss_first) view_.loss_first = step.loss;
            view_.loss_last = step.loss;
        }
    }

    void take(const DeviceSample& sample) {
        devices_.add(sample);
        double at = seconds_of(sample.time_ns);
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
        if (sample.memory_used_bytes) {
            found->memory.add(at, static_cast<double>(*sample.memory_used_bytes));
            view_.memory_peak_bytes = std::max(view_.memory_peak_bytes.value_or(0),
                                               static_cast<double>(*sample.memory_used_bytes));
        }
        if (sample.utilization_percent) busy_.add(*sample.utilization_percent);
        if (sample.power_watts) power_.add(*sample.power_watts);
    }

    void take(const EventRecord& event) {
        view_.seconds = std::max(view_.seconds, seconds_of(event.time_ns));
        events_.add(event);
    }

    // What follows from all that was taken so far.
    void finish(RunRecord record, RunView& out) {
        if (!durations_.empty()) {
            out.step_p50_ms = 1e3 * quantile(durations_, 0.5);
            out.step_p99_ms = 1e3 * quantile(durations_, 0.99);
        }
        if (!rates_.empty()) {
            out.samples_per_second =
                Spread{quantile(rates_, 0.5), quantile(rates_, 0.05), quantile(rates_, 0.95),
                       static_cast<std::int64_t>(rates_.size())};
        }
        // What the driver saw counts before what the job counted itself.
        const Running& busy = busy_.n() > 0 ? busy_ : step_busy_;
        out.busy_mean = busy.mean();
        out.busy_deviation = busy.deviation();
        out.power_mean_watts = power_.mean();
        if (out.summary) {
            out.energy_joules = out.summary->energy_joules;
            if (!out.memory_peak_bytes && out.summary->memory_peak_bytes)
                out.memory_peak_bytes = static_cast<double>(*out.summary->memory_peak_bytes);
        }
        if (!out.energy_joules && out.power_mean_watts)
            out.energy_joules =
                *out.power_mean_watts * out.seconds * static_cast<double>(out.gpus.size());
        double known = 0;
        for (std::size_t i = 0; i < std::size(kPhases); ++i) {
            if (!phase_known_[i] || total_ns_ <= 0) continue;
            out.split.emplace_back(kPhases[i].name, 100 * phase_ns_[i] / total_ns_);
            known += phase_ns_[i];
        }
        if (!out.split.empty() && total_ns_ > known)
            out.split.emplace_back("other", 100 * (total_ns_ - known) / total_ns_);
        for (const Json& gpu : out.info.machine["gpus"].items()) {
            for (GpuCurves& curves : out.gpus) {
                if (gpu["gpu"].integer() == curves.gpu)
                    curves.name = gpu["name"].string().value_or("");
            }
        }
        out.events_left_out = events_.left_out();
        out.events = events_.kept;
        for (EventRecord& event : out.events) event.time_ns -= start_ns_;
        record.steps = steps_.kept;
        record.devices = devices_.kept;
        record.hosts = hosts_.kept;
        record.events = events_.kept;
        out.diagnosis = diagnose_run(record, out.folder);
    }

    RunView view_;  // what is only added to
    std::optional<RunFollower> follower_;
    std::int64_t start_ns_ = 0;
    Thinned<StepRecord> steps_{20'000};
    Thinned<DeviceSample> devices_{4'000};
    Thinned<HostSample> hosts_{4'000};
    Thinned<EventRecord> events_{300};
    std::vector<float> durations_, rates_;
    double total_ns_ = 0;
    double phase_ns_[std::size(kPhases)] = {};
    bool phase_known_[std::size(kPhases)] = {};
    Running busy_, step_busy_, power_;
};

}  // namespace

void Curve::add(double x, double y) {
    if (!(x >= 0) || !std::isfinite(y)) return;
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
            to.n += from.n;
        }
        buckets_ = std::move(half);
    }
    auto at = static_cast<std::size_t>(x / width_);
    if (buckets_.size() <= at) buckets_.resize(at + 1);
    Bucket& bucket = buckets_[at];
    bucket.least = bucket.n > 0 ? std::min(bucket.least, y) : y;
    bucket.most = bucket.n > 0 ? std::max(bucket.most, y) : y;
    bucket.sum += y;
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
