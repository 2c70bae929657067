// SPDX-License-Identifier: Apache-2.0
// What a run reports while it works: step records, events, curves and lines for the observer. A
// record waits until the device has reported the time of its step. Training thread.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "engine/device_backend.h"
#include "engine/tensorboard.h"
#include "telemetry/account.h"
#include "telemetry/recorder.h"

namespace saturate {

// One line of progress, at every log interval.
struct TrainProgress {
    std::int64_t epoch = 0;  // from 0
    std::optional<std::int64_t> epochs;
    std::int64_t step = 0;  // steps done
    std::optional<std::int64_t> steps;
    std::optional<double> loss;  // mean of the interval read last
    double learning_rate = 0;
    double samples_per_second = 0;
    std::optional<double> busy_percent;  // of the device, if it can measure it
    double input_wait_percent = 0;
    std::uint64_t memory_bytes = 0;  // peak
    std::optional<double> seconds_left;
};

// How far a run is.
struct TrainPlace {
    std::int64_t step = 0;  // steps done
    std::optional<std::int64_t> steps;
    std::optional<double> seconds_left;
};

// Receives the reports: the command line, or a test.
class TrainObserver {
  public:
    virtual ~TrainObserver() = default;
    virtual void progress(const TrainProgress& progress) = 0;
    virtual void say(const std::string& line) = 0;  // something happened
    [[nodiscard]] virtual bool stop_wanted(const TrainPlace& place) = 0;  // before every step
};

class TrainLog {
  public:
    TrainLog(TrainObserver& observer, DeviceBackend& backend)
        : observer_(observer), backend_(backend) {}
    // `recorder` outlives the run. With an empty `tensorboard` no curves are written.
    void begin(Recorder& recorder, const std::filesystem::path& tensorboard);
    [[nodiscard]] Recorder& recorder() { return *recorder_; }

    void say(const std::string& line) { observer_.say(line); }
    void note(EventKind kind, std::int64_t step, const std::string& text,
              std::optional<std::int64_t> duration_ns = {}, Json values = {});
    void curve(const std::string& name, std::int64_t step, double value);

    // Keeps a record until write(). `mark` belongs to the device's collectives in this step, whose
    // times also come late.
    void add(const StepRecord& record, std::optional<std::int64_t> mark = {});
    using AskCollectives = std::function<std::optional<CollectiveTimes>(std::int64_t mark)>;
    void ask_collectives(AskCollectives ask) { ask_collectives_ = std::move(ask); }
    void write() { write(false); }     // records whose times the device has reported
    void write_all() { write(true); }  // also the others
    // Sums over the steps since the last call.
    [[nodiscard]] StepSums take_interval() { return account_.take_interval(); }
    void show(const TrainProgress& progress, std::optional<std::int64_t> loss_step);
    [[nodiscard]] Account account() const { return account_.account(); }
    // Share of the time from the beginning to the end of steps on the device, idle gaps included,
    // so an upper bound of busy. Nothing if the device measures busy time itself.
    [[nodiscard]] std::optional<double> span_percent() const;
    // Reports a failure to write the curves.
    void end();

  private:
    struct Unsent {
        StepRecord record;
        std::optional<std::int64_t> mark, span_ns;
    };
    void write(bool all);
    // Returns false if the device has not reported the times yet.
    [[nodiscard]] bool fill_times(Unsent& step, bool tells);

    TrainObserver& observer_;
    DeviceBackend& backend_;
    Recorder* recorder_ = nullptr;
    std::optional<TensorBoardFile> curves_;
    RunAccount account_;
    AskCollectives ask_collectives_;
    std::int64_t span_ns_ = 0, spanned_ns_ = 0;
    std::deque<Unsent> unsent_;  // until the device has reported their times
};

}  // namespace saturate
