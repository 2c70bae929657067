// SPDX-License-Identifier: Apache-2.0
// Trains a job: batches in, steps, evaluations, checkpoints and a run record out. run() is the
// whole of it, from top to bottom. One thread; loading and writing checkpoints have their own.
#pragma once

#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "engine/checkpoint.h"
#include "engine/checkpoint_writer.h"
#include "engine/evaluation.h"
#include "engine/feed.h"
#include "engine/losses.h"
#include "engine/tally.h"
#include "engine/tensorboard.h"
#include "engine/train_settings.h"
#include "engine/weight_mean.h"

namespace saturate {

// One line of progress, at every log interval.
struct TrainProgress {
    std::int64_t epoch = 0;  // from 0
    std::optional<std::int64_t> epochs;
    std::int64_t step = 0;  // steps done
    std::optional<std::int64_t> steps;
    std::optional<double> loss;  // mean of the interval that was read
    double learning_rate = 0;
    double samples_per_second = 0;
    double busy_percent = 0;  // of the device
    double input_wait_percent = 0;
    std::uint64_t memory_bytes = 0;  // peak
    std::optional<double> seconds_left;
};

// Who looks on: the command line, or a test.
class TrainObserver {
  public:
    virtual ~TrainObserver() = default;
    virtual void progress(const TrainProgress& progress) = 0;
    virtual void say(const std::string& line) = 0;  // something happened
    [[nodiscard]] virtual bool stop_wanted() = 0;   // asked before every step
};

struct TrainPlaces {
    std::filesystem::path checkpoints;  // empty: none are written
    std::filesystem::path tensorboard;  // empty: none
};

struct TrainResult {
    std::string ended = "done";      // done, interrupted, failed
    std::string why;                 // "12 epochs", "early stopping", ...
    std::optional<Problem> problem;  // of a run that failed
    std::optional<double> metric, metric_best, metric_first;
    std::optional<std::int64_t> best_step;
    RunSummary summary;  // without what only the recorder knows
};

class Trainer {
  public:
    // All outlive the trainer. `job` was made with the generator seeded by settings.seed. Throws
    // UserError for what cannot begin, e.g. a batch larger than the data.
    Trainer(Job& job, const TrainSettings& settings, TrainPlaces places, DeviceBackend& backend,
            TrainObserver& observer);
    ~Trainer();

    // Goes on where a checkpoint stopped. Throws UserError when it is of another model. Before
    // run().
    void restore(const FoundCheckpoint& found);
    // Once. Failures of the run are in the result.
    [[nodiscard]] TrainResult run(Recorder& recorder);

  private:
    // Which batches a step was made of, until its loss was looked at.
    struct Trained {
        static constexpr std::size_t kNamed = 3;
        std::int64_t step = 0, epoch = 0, batch = 0;
        std::vector<std::int64_t> samples;  // the first few
    };

    void check() const;
    void begin();
    [[nodiscard]] bool is_over();
    [[nodiscard]] std::vector<Upload> next_batches();
    void run_step(std::vector<Upload> batches);
    [[nodiscard]] StepTimes run_within_memory(std::span<const TensorBatch> batches);
    void emit_records(bool all);
    void log();
    void look_at(const ReadLosses& losses);
    void stop_for(const Trained& trained, float loss);
    void act_between_steps();
    void end_epoch();
    void evaluate_now();
    void save_checkpoint(bool is_best);
    void tell_saved();
    [[nodiscard]] TrainResult finish();
    [[nodiscard]] TrainProgress progress(const StepSums& interval) const;
    [[nodiscard]] std::optional<std::int64_t> total_steps() const;
    [[nodiscard]] NamedTensors model_tensors() const;
    [[nodiscard]] NamedTensors state_tensors();
    [[nodiscard]] Json facts() const;
    void note(EventKind kind, const std::string& text, std::optional<std::int64_t> duration_ns = {},
              Json values = {});

    Job& job_;
    TrainSettings settings_;
    TrainPlaces places_;
    DeviceBackend& backend_;
    Recorder* recorder_ = nullptr;
    TrainObserver& observer_;

    std::shared_ptr<const SampleSource> data_, validation_;
    std::optional<TrainingStep> step_run_;
    std::optional<WeightMean> mean_;
    std::optional<LossLog> losses_;
    std::optional<Loader> loader_;
    std::optional<Feed> feed_;
    std::optional<CheckpointWriter> writer_;
    std::optional<TensorBoardFile> curves_;

    // Part of the checkpoint.
    std::int64_t step_ = 0;  // steps done
    std::int64_t samples_ = 0;
    LoaderState position_;
    bool epoch_ended_ = false;  // its last batch was taken, its end not yet acted on
    std::optional<double> metric_, best_, first_metric_;
    std::optional<std::int64_t> best_step_;
    std::int64_t evaluations_worse_ = 0;

    std::int64_t started_ns_ = 0, steps_per_epoch_ = 0, first_step_ = 0;
    std::int64_t evaluated_at_ = -1, saved_at_ = -1;
    std::int64_t nonfinite_row_ = 0;  // consecutive steps whose loss was no number
    StepTotals totals_;
    std::deque<StepRecord> unsent_;  // until the device has told its time
    std::deque<Trained> trained_;
    std::optional<double> loss_first_, loss_last_;
    std::optional<double> read_loss_;        // mean of the interval read last
    std::optional<std::int64_t> read_step_;  // its last step
    std::optional<float> unsent_loss_;       // for the next record
    std::string over_because_, ended_ = "done";
    std::optional<Problem> problem_;
};

}  // namespace saturate
