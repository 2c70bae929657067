// SPDX-License-Identifier: Apache-2.0
// Trains a job: takes batches, runs steps, evaluates, writes checkpoints and a run record. run()
// does everything, from start to end. One thread; loading and writing checkpoints have their own.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "engine/checkpoint_writer.h"
#include "engine/evaluation.h"
#include "engine/feed.h"
#include "engine/losses.h"
#include "engine/rank_team.h"
#include "engine/train_log.h"
#include "engine/train_settings.h"
#include "engine/train_state.h"

namespace saturate {

struct TrainPlaces {
    std::filesystem::path checkpoints;  // empty: write none
    std::filesystem::path tensorboard;  // empty: write none
};

struct TrainResult {
    std::string ended = "done";      // done, interrupted, failed
    std::string why;                 // "12 epochs", "early stopping", ...
    std::optional<Problem> problem;  // of a failed run
    std::optional<double> metric, metric_best, metric_first;
    std::optional<std::int64_t> best_step;
    // With several ranks: share of the step time in which gradients were being sent, hidden or not.
    std::optional<double> communication_percent;
    std::optional<double> device_span_percent;  // upper bound, if busy is not measured
    bool device_lost = false;                   // it no longer answers: end the process at once
    LoaderRoom room;                            // for the training data
    RunSummary summary;                         // without the fields that only the recorder knows
};

class Trainer {
  public:
    // All arguments outlive the trainer. `job` was made with the generator seeded by settings.seed.
    // `group`: the ranks of the job; null: one process. Rank 0 writes the checkpoints. Throws
    // UserError if the run cannot begin, e.g. with a batch larger than the data.
    Trainer(Job& job, const TrainSettings& settings, TrainPlaces places, DeviceBackend& backend,
            TrainObserver& observer, ProcessGroup* group = nullptr);
    ~Trainer();

    // Continues from a checkpoint. Call before run(), and with several ranks only on rank 0, which
    // passes it to the others. Throws UserError if the checkpoint is of another model.
    void restore(const FoundCheckpoint& found);
    // Call once. Failures of the run are in the result.
    [[nodiscard]] TrainResult run(Recorder& recorder);

  private:
    // The batches of a step, kept until its loss has been checked.
    struct Trained {
        static constexpr std::size_t kNamed = 3;
        std::int64_t step = 0, epoch = 0, batch = 0;
        std::vector<std::int64_t> samples;  // the first few
    };

    void keep_failure(const std::function<void()>& work);
    [[nodiscard]] Problem lost_device(const c10::Error& error) const;
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
    [[nodiscard]] TrainResult finish();

    // In trainer_begin.cpp.
    void check() const;
    void begin();
    void begin_ranks();
    void tell_of_data();
    [[nodiscard]] std::uint64_t prefetch_bytes(std::int64_t batch_size) const;  // 0: no limit
    void tell_of_prefetch();
    [[nodiscard]] std::optional<std::int64_t> total_steps() const;

    // In trainer_state.cpp: checkpoints.
    void save_checkpoint(bool is_best);
    [[nodiscard]] std::optional<Checkpoint> take_alone(const RankLost& lost);
    void save_alone(const RankLost& lost);
    void tell_saved();
    void check_kept() const;
    [[nodiscard]] Json facts(const TrainFacts& of) const;
    void convert_position(int ranks_before);

    // In trainer_log.cpp: losses read back, and progress.
    void log(StepRecord& record);
    void look_at_losses();
    void look_at_read();
    void look_at(const ReadLosses& losses, const std::vector<float>& own);
    void stop_for(const Trained& trained, float loss);
    [[nodiscard]] double seconds() const;  // since run() began
    [[nodiscard]] TrainProgress progress(const StepSums& interval) const;
    [[nodiscard]] TrainPlace place() const;
    void note(EventKind kind, const std::string& text, std::optional<std::int64_t> duration_ns = {},
              Json values = {}) {
        log_.note(kind, now_.step, text, duration_ns, std::move(values));
    }

    Job& job_;
    TrainSettings settings_;
    TrainPlaces places_;
    DeviceBackend& backend_;
    TrainObserver& observer_;
    std::unique_ptr<Ranks> ranks_;
    TrainLog log_;

    std::shared_ptr<const SampleSource> data_, validation_;
    std::optional<TrainingStep> step_run_;
    std::optional<WeightMean> mean_;
    std::optional<TrainTensors> tensors_;
    std::optional<LossLog> losses_;
    std::optional<Loader> loader_;
    std::optional<Feed> feed_;
    std::optional<CheckpointWriter> writer_;
    LoaderRoom room_;
    std::shared_ptr<SlabMemory> evaluation_memory_;

    TrainFacts now_;     // what a checkpoint stores, for the step just done
    TrainFacts before_;  // ... for the step before it, which a device may still be at
    std::optional<std::int64_t> mark_;  // of the last step's sums, if the device makes them
    bool epoch_ended_ = false;  // as now_.epoch_ended, but for the batches taken from the loader
    NamedTensors random_kept_;  // generators of ranks 1 and up, from a checkpoint

    std::int64_t started_ns_ = 0, steps_per_epoch_ = 0, first_step_ = 0;
    std::int64_t evaluated_at_ = -1, saved_at_ = -1;
    std::optional<std::int64_t> kept_step_;  // step of the newest checkpoint on disk
    std::optional<SavedCheckpoint> unkept_;  // the newest checkpoint, if it could not be written
    std::int64_t nonfinite_row_ = 0;         // consecutive steps with a non-finite loss
    std::deque<ReadLosses> read_;            // own losses that have not been checked yet
    std::deque<Trained> trained_;
    std::optional<double> loss_first_, loss_last_;
    std::optional<double> read_loss_;        // mean of the interval read last
    std::optional<std::int64_t> read_step_;  // its last step
    std::optional<float> unsent_loss_;       // waits for the next record
    std::string over_because_, ended_ = "done";
    std::optional<Problem> problem_;
};

}  // namespace saturate
