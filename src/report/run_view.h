// SPDX-License-Identifier: Apache-2.0
// A run as a report shows it, made in one pass over its record in bounded memory, however long it
// ran. Figures come from the account of every step (telemetry/account.h). Curves are down-sampled
// to a few hundred points with minimum and maximum, and are only for drawing.
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

// A curve of unknown range: if a value falls beyond the last bucket, pairs of buckets are merged
// and the width doubles.
class Curve {
  public:
    explicit Curve(double first_width) : width_(first_width) {}
    // For a share or a rate, pass the time that it covers as the weight, so that means are correct.
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
    std::string name;  // last part of the folder, for headings
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
    std::vector<EventRecord> events;  // at most 300, spread evenly over the run
    std::int64_t events_left_out = 0;
    Diagnosis diagnosis;

    [[nodiscard]] std::optional<double> joules_per_1000_samples() const;
};

// Returns "after" for "runs/after", for "runs/after/" and for "." inside that folder.
[[nodiscard]] std::string run_folder_name(const std::filesystem::path& folder);

// Throws UserError if there is no record.
[[nodiscard]] RunView view_run(const std::filesystem::path& folder);

// The same for a running job: each view() reads only the new lines. Used from one thread.
class RunViewer {
  public:
    explicit RunViewer(const std::filesystem::path& folder);
    ~RunViewer();
    RunViewer(const RunViewer&) = delete;
    RunViewer& operator=(const RunViewer&) = delete;

    // `is_end`: nothing more will be written, so an incomplete line counts as cut off. Throws like
    // view_run().
    [[nodiscard]] RunView view(bool is_end);
    [[nodiscard]] bool has_shrunk() const;  // another run took the folder: make a new viewer

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
