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
#include "engine/process_group.h"
#include "engine/tensorboard.h"
#include "engine/train_settings.h"
#include "engine/weight_mean.h"
#include "telemetry/account.h"

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
    // Of several ranks: share of the step time in which gradients were under way, hidden or not.
    std::optional<double> communication_percent;
    RunSummary summary;  // without what only the recorder knows
};

class Trainer {
  public:
    // All outlive the trainer. `job` was made with the generator seeded by settings.seed. Throws
    // UserError for what cannot begin, e.g. a batch larger than the data. `group`: the ranks of the
    // job; null: one process. Rank 0 writes the checkpoints.
    Trainer(Job& job, const TrainSettings& settings, TrainPlaces places, DeviceBackend& backend,
            TrainObserver& observer, ProcessGroup* group = nullptr);
    ~Trainer();

    // Goes on where a checkpoint stopped. Throws UserError when it is of another model. Before
    // run(); of several ranks on rank 0, from which the others get it.
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
    void conclude();
    [[nodiscard]] bool is_over();
    [[nodiscard]] StopWish stop_wish();
    [[nodiscard]] std::vector<Upload> next_batches();
    void run_step(std::vector<Upload> batches);
    [[nodiscard]] StepTimes run_within_memory(std::span<const TensorBatch> batches);
    void act_between_steps();
    void end_epoch();
    void evaluate_now();
    [[nodiscard]] Evaluation evaluate_mean();
    void save_checkpoint(bool is_best);
    void tell_saved();
    [[nodiscard]] TrainResult finish();
    [[nodiscard]] std::optional<std::int64_t> total_steps() const;
    [[nodiscard]] NamedTensors model_tensors() const;
    [[nodiscard]] NamedTensors state_tensors();
    [[nodiscard]] Json facts() const;
    void apply_facts(std::int64_t step, const Json& facts);
    [[nodiscard]] int ranks() const { return group_ ? group_->count() : 1; }

    // In trainer_log.cpp: what it tells.
    void emit_records(bool all);
    void log();
    void look_at(ReadLosses losses);
    void stop_for(const Trained& trained, float loss);
    [[nodiscard]] double seconds() const;  // since run() began
    [[nodiscard]] TrainProgress progress(const StepSums& interval) const;
    void note(EventKind kind, const std::string& text, std::optional<std::int64_t> duration_ns = {},
              Json values = {});

    // In trainer_ranks.cpp: what the ranks do together.
    [[nodiscard]] bool is_together() const { return group_ && !alone_; }
    void begin_ranks();
    void compare_settings();
    void share_state();
    void compare_weights();
    void reduce_losses(ReadLosses& losses);
    void share_problem(bool is_mine);
    void share_evaluation(torch::Tensor& sums, std::int64_t& samples);
    [[nodiscard]] NamedTensors random_of_ranks();
    void restore_random_of_ranks();
    void convert_position(int ranks_before);
    void save_alone(const RankLost& lost);

    Job& job_;
    TrainSettings settings_;
    TrainPlaces places_;
    DeviceBackend& backend_;
    Recorder* recorder_ = nullptr;
    TrainObserver& observer_;
    ProcessGroup* group_;
    bool alone_ = false;  // nothing is done together any more: this rank failed, or lost another

    std::shared_ptr<const SampleSource> data_, validation_;
    std::optional<TrainingStep> step_run_;
    std::optional<GradientReducer> reducer_;
    std::optional<WeightMean> mean_;
    std::optional<LossLog> losses_;
    std::optional<Loader> loader_;
    std::optional<Feed> feed_;
    std::optional<CheckpointWriter> writer_;
    std::optional<TensorBoardFile> curves_;

    // Part of the checkpoint.
    std::int64_t step_ = 0;  // steps done
    std::int64_t samples_ = 0;
    LoaderState position_;      // after the last step that is complete
    bool epoch_ended_ = false;  // its last batch was taken, its end not yet acted on
    NamedTensors random_kept_;  // of further ranks, from a checkpoint
    std::optional<double> metric_, best_, first_metric_;
    std::optional<std::int64_t> best_step_;
    std::int64_t evaluations_worse_ = 0;

    std::int64_t started_ns_ = 0, steps_per_epoch_ = 0, first_step_ = 0;
    std::int64_t evaluated_at_ = -1, saved_at_ = -1;
    bool epoch_ended_then_ = false;  // epoch_ended_ at position_
    std::int64_t communication_ns_ = 0;
    std::int64_t nonfinite_row_ = 0;  // consecutive steps whose loss was no number
    RunAccount account_;
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
