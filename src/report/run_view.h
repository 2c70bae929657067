// SPDX-License-Identifier: Apache-2.0
// A run as a report shows it: one pass over its record, in bounded memory however long it ran.
// Figures are those of the account of every step (telemetry/account.h). Curves are down-sampled, to
// a few hundred points with their least and most, and are for drawing only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "diagnosis/diagnosis.h"
#include "telemetry/record.h"

namespace saturate {

// A curve whose range is not known beforehand: when a value falls behind the last bucket, pairs of
// buckets become one and the width doubles.
class Curve {
  public:
    explicit Curve(double first_width) : width_(first_width) {}
    // Of a share or a rate the weight is the time it is of: then a mean is what it was over all.
    void add(double x, double y, double weight = 1);

    struct Bucket {
        double sum = 0, weight = 0, least = 0, most = 0;
        std::int64_t n = 0;
    };
    [[nodiscard]] double width() const { return width_; }
    [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
    static constexpr std::size_t kMost = 600;

  private:
    double width_;
    std::vector<Bucket> buckets_;
};

struct GpuCurves {
    int gpu = 0;
    std::string name;
    Curve utilisation{1}, power{1}, memory{1}, temperature{1};
};

struct RunView {
    std::string folder;
    std::string name;  // its last part, for headings
    RunInfo info;
    std::optional<RunSummary> summary;
    std::vector<std::string> notes;

    double seconds = 0;
    std::int64_t steps = 0;
    std::int64_t samples = 0;
    std::optional<RunRate> samples_per_second;
    std::optional<double> step_p50_ms, step_p99_ms;
    std::optional<double> busy_mean, busy_deviation;  // percent, points
    std::optional<double> memory_peak_bytes, power_mean_watts, energy_joules;
    std::optional<double> loss_first, loss_last;
    std::vector<std::pair<std::string, double>> split;  // percent of step time by phase

    std::vector<GpuCurves> gpus;
    Curve rate{1}, step_busy{1}, loss_by_time{1}, loss_by_samples{1};
    std::vector<EventRecord> events;  // at most 300, evenly over the run
    std::int64_t events_left_out = 0;
    Diagnosis diagnosis;

    [[nodiscard]] std::optional<double> joules_per_1000_samples() const;
};

// "after" of "runs/after", of "runs/after/" and of "." inside it.
[[nodiscard]] std::string run_folder_name(const std::filesystem::path& folder);

// Throws UserError when there is no record.
[[nodiscard]] RunView view_run(const std::filesystem::path& folder);

// The same for a run that goes on: each view reads what has come since the last one. One thread.
class RunViewer {
  public:
    explicit RunViewer(const std::filesystem::path& folder);
    ~RunViewer();
    RunViewer(const RunViewer&) = delete;
    RunViewer& operator=(const RunViewer&) = delete;

    // `is_end`: nothing more is to come, half a line is a cut one. Throws as view_run does.
    [[nodiscard]] RunView view(bool is_end);
    [[nodiscard]] bool has_shrunk() const;  // another run took the folder: make a new viewer

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
