// SPDX-License-Identifier: Apache-2.0
#include "engine/trainer.h"

#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <system_error>

#include "engine/seed.h"
#include "small_job.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;

struct Outcome {
    TrainResult result;
    MemoryRecorder recorder;
    ListeningObserver observer;

    // Loss by step, as far as it was read into the record.
    [[nodiscard]] std::vector<std::pair<std::int64_t, double>> losses() const {
        std::vector<std::pair<std::int64_t, double>> out;
        for (const StepRecord& step : recorder.steps) {
            if (step.loss) out.emplace_back(*step.loss_step, *step.loss);
        }
        return out;
    }
    [[nodiscard]] int count(EventKind kind) const {
        int out = 0;
        for (const EventRecord& event : recorder.events) out += event.kind == kind ? 1 : 0;
        return out;
    }
    [[nodiscard]] std::string event_text(EventKind kind) const {
        for (const EventRecord& event : recorder.events) {
            if (event.kind == kind) return event.text;
        }
        return "";
    }
};

struct Wish {
    SmallJobSettings job = {};
    TrainSettings train = small_settings();
    TrainPlaces places = {};
    bool resume = false;
    std::int64_t stop_after = -1;
};

std::unique_ptr<Outcome> train(const Wish& setup) {
    auto ran = std::make_unique<Outcome>();
    ran->observer.stop_after = setup.stop_after;
    auto backend = make_cpu_backend(setup.train.device, false);
    set_seed(setup.train.seed);
    SmallJob job(setup.job);
    Trainer trainer(job, setup.train, setup.places, *backend, ran->observer);
    if (setup.resume) {
        auto found = find_checkpoint(setup.places.checkpoints);
        EXPECT_TRUE(found);
        trainer.restore(*found);
    }
    ran->result = trainer.run(ran->recorder);
    return ran;
}

// What train says at its end is what everybody else computes from its record.
TEST(TrainerTest, TheSummaryIsTheAccountOfItsSteps) {
    auto ran = train({});
    Account account = account_of(ran->recorder.steps);
    const RunSummary& summary = ran->result.summary;
    ASSERT_TRUE(summary.samples_per_second && account.samples_per_second);
    EXPECT_DOUBLE_EQ(summary.samples_per_second->rate, account.samples_per_second->rate);
    EXPECT_EQ(summary.samples_per_second->n, account.samples_per_second->n);
    EXPECT_EQ(summary.step_p50_ms, account.step_p50_ms);
    EXPECT_EQ(summary.busy_percent, account.busy_percent);
    EXPECT_EQ(summary.samples, account.samples);
}

TEST(TrainerTest, LossFallsAndTheRecordHoldsEveryStep) {
    auto ran = train({});
    EXPECT_EQ(ran->result.ended, "done");
    EXPECT_EQ(ran->result.why, "4 epochs");
    ASSERT_EQ(ran->recorder.steps.size(), 32u);
    std::int64_t number = 0;
    for (const StepRecord& step : ran->recorder.steps) {
        EXPECT_EQ(step.step, number++);
        EXPECT_EQ(step.samples, 8);
        EXPECT_TRUE(step.forward_ns && step.backward_ns && step.optimizer_ns &&
                    step.device_busy_ns);
        EXPECT_GE(step.duration_ns, *step.forward_ns + *step.backward_ns + *step.optimizer_ns);
    }
    EXPECT_LT(*ran->result.summary.loss_last, 0.8 * *ran->result.summary.loss_first);
    EXPECT_LT(*ran->result.metric, *ran->result.metric_first);
    EXPECT_EQ(ran->count(EventKind::epoch), 4);
    EXPECT_EQ(ran->count(EventKind::evaluation), 4);
    EXPECT_EQ(ran->result.summary.samples, 256);
}

TEST(TrainerTest, LossesAreReadAnIntervalLate) {
    auto ran = train({});
    auto losses = ran->losses();
    ASSERT_EQ(losses.size(), 7u);  // the eighth interval is drained at the end
    EXPECT_EQ(losses[0].first, 3);
    std::vector<std::int64_t> when;
    for (const StepRecord& step : ran->recorder.steps) {
        if (step.loss) when.push_back(step.step);
    }
    EXPECT_EQ(when[0], 7);
}

// Calls that make the host wait for a device. On the CPU they return at once, so counting is the
// only way to see them. The CPU's kernels of optimizer and scaler read their own small tensors this
// way, which a GPU's do on the device: what they call is not counted.
class SyncCounter {
  public:
    SyncCounter() {
        seen = calls = 0;
        handle_ = at::addGlobalCallback(
            at::RecordFunctionCallback(begin, end).scopes({at::RecordScope::FUNCTION}));
    }
    ~SyncCounter() { at::removeCallback(handle_); }
    static inline std::atomic<int> seen = 0, calls = 0;

  private:
    static bool is_kernel(const at::RecordFunction& call) {
        std::string_view name = call.name();
        return name.starts_with("aten::_fused_") || name.starts_with("aten::_amp_");
    }
    static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction& call) {
        static const char* kWaits[] = {"aten::_local_scalar_dense",
                                       "aten::item",
                                       "aten::is_nonzero",
                                       "aten::nonzero",
                                       "aten::equal",
                                       "aten::masked_select",
                                       "aten::_unique2",
                                       "aten::allclose",
                                       "aten::_linalg_check_errors"};
        if (inside == 0) {
            for (const char* name : kWaits) seen += std::string_view(call.name()) == name;
        }
        ++calls;
        inside += is_kernel(call) ? 1 : 0;
        return nullptr;
    }
    static void end(const at::RecordFunction& call, at::ObserverContext*) {
        inside -= is_kernel(call) ? 1 : 0;
    }

    static inline thread_local int inside = 0;
    at::CallbackHandle handle_;
};

TEST(TrainerTest, NoStepMakesTheHostWait) {
    Wish setup;
    setup.train.eval_epochs = 0;
    setup.train.step.grad_clip = 1;
    setup.train.ema = 0.9;
    setup.train.accumulation = 2;
    setup.train.log_interval = 2;
    setup.train.schedule.kind = ScheduleKind::cosine;
    for (Precision precision : {Precision::fp32, Precision::fp16}) {
        setup.train.precision_wish =
            PrecisionWish{.on = precision == Precision::fp16, .type = precision};
        for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd}) {
            setup.train.step.optimizer.kind = kind;
            SyncCounter counter;
            auto ran = train(setup);
            EXPECT_EQ(ran->recorder.steps.size(), 16u);
            EXPECT_GT(SyncCounter::calls, 100);
            EXPECT_EQ(SyncCounter::seen, 0);
        }
    }
    SyncCounter counter;
    (void)torch::ones({}).item();  // the counter does count
    EXPECT_GT(SyncCounter::seen, 0);
}

TEST(TrainerTest, NanStopsWithTheNamedBatch) {
    Wish setup;
    setup.job.nan_sample = 0;
    setup.job.size = 8;
    auto ran = train(setup);
    EXPECT_EQ(ran->result.ended, "failed");
    ASSERT_TRUE(ran->result.problem);
    std::string text = ran->result.problem->text();
    EXPECT_TRUE(text.starts_with(
        "error: the loss of step 0 is nan: batch 0 of epoch 0, which begins with sample-"))
        << text;
    EXPECT_THAT(text, HasSubstr("\n  expected: a finite loss\n"
                                "  fix:      look at these samples; else a lower learning_rate, "
                                "warmup_steps or grad_clip"));
    EXPECT_GE(ran->count(EventKind::nonfinite_loss), 1);
}

TEST(TrainerTest, NanNeverReachesACheckpoint) {
    TemporaryFolder folder;
    Wish setup;
    setup.job = {.size = 8, .nan_sample = 3};
    setup.train.checkpoint_steps = 1;
    setup.train.log_interval = 100;
    setup.places.checkpoints = folder.path() / "checkpoints";
    auto ran = train(setup);
    EXPECT_EQ(ran->result.ended, "failed");
    EXPECT_TRUE(list_checkpoints(setup.places.checkpoints).empty());
}

TEST(TrainerTest, ScalerSkipsSingleBadSteps) {
    Wish setup;
    setup.job = {.size = 64, .nan_sample = 3};
    setup.train.precision_wish = PrecisionWish{.on = true, .type = Precision::fp16};
    auto ran = train(setup);
    EXPECT_EQ(ran->result.ended, "done");
    EXPECT_EQ(ran->count(EventKind::nonfinite_loss), 4);  // once per epoch
    EXPECT_THAT(ran->event_text(EventKind::nonfinite_loss), HasSubstr("is nan: step skipped"));
    EXPECT_TRUE(std::isfinite(*ran->result.metric));
}

TEST(TrainerTest, HalvesTheMicroBatchWhenMemoryRunsOut) {
    Wish plain, tight;
    plain.job.heavy = tight.job.heavy = 1 << 18;  // 1 MiB per sample
    plain.train.epochs = tight.train.epochs = 1;
    plain.train.eval_epochs = tight.train.eval_epochs = 0;
    tight.train.device.memory_limit_bytes = 8 << 20;
    auto whole = train(plain), halved = train(tight);
    EXPECT_EQ(halved->result.ended, "done");
    EXPECT_EQ(whole->count(EventKind::out_of_memory), 0);
    EXPECT_GE(halved->count(EventKind::out_of_memory), 1);
    EXPECT_EQ(halved->event_text(EventKind::out_of_memory),
              "out of memory in step 0: micro-batch 4 instead of 8, 2 times the accumulation");
    // The same gradients but for the order of their sums: 8 samples, a dozen operations.
    EXPECT_NEAR(*halved->result.summary.loss_last, *whole->result.summary.loss_last, 1e-5);
    EXPECT_LE(halved->result.summary.memory_peak_bytes, 8u << 20);
}

TEST(TrainerTest, SaysWhenNotEvenOneSampleFits) {
    Wish setup;
    setup.job.heavy = 1 << 22;
    setup.train.device.memory_limit_bytes = 2 << 20;
    auto ran = train(setup);
    EXPECT_EQ(ran->result.ended, "failed");
    EXPECT_THAT(ran->result.problem->found,
                HasSubstr("out of memory with a micro-batch of 1 in step 0: "));
    EXPECT_EQ(ran->result.problem->fix, "a smaller model, or a larger device");
    setup.train.can_recompute = true;  // a job that would know it
    EXPECT_EQ(train(setup)->result.problem->fix,
              "gradient_checkpointing: true, a smaller model, or a larger device");
}

TEST(TrainerTest, RefusesABatchLargerThanTheData) {
    Wish setup;
    setup.job.size = 5;
    try {
        (void)train(setup);
        FAIL();
    } catch (const UserError& error) {
        EXPECT_STREQ(error.what(),
                     "error: batch_size is 8, and the training data has 5 samples\n"
                     "  expected: 1 to 5\n"
                     "  fix:      batch_size: 5");
    }
}

TEST(TrainerTest, StopsEarlyAndKeepsTheBest) {
    TemporaryFolder folder;
    Wish setup;
    setup.job.metrics = {3, 1, 2, 2, 2};
    setup.train.epochs = 50;
    setup.train.early_stopping = 2;
    setup.train.checkpoint_epochs = 1;
    setup.train.checkpoint_keep = 1;
    setup.places.checkpoints = folder.path() / "checkpoints";
    auto ran = train(setup);
    EXPECT_EQ(ran->result.why, "no better error in 2 evaluations");
    EXPECT_EQ(ran->result.metric_best, 1);
    EXPECT_EQ(ran->result.best_step, 16);
    std::vector<std::string> kept;
    for (const auto& path : list_checkpoints(setup.places.checkpoints))
        kept.push_back(path.filename());
    EXPECT_EQ(kept, (std::vector<std::string>{"step_0000000032", "step_0000000016"}));
    EXPECT_EQ(std::filesystem::read_symlink(setup.places.checkpoints / "best"), "step_0000000016");
}

TEST(TrainerTest, StopWantedWritesACheckpointAndEnds) {
    TemporaryFolder folder;
    Wish setup;
    setup.stop_after = 5;
    setup.places.checkpoints = folder.path() / "checkpoints";
    auto ran = train(setup);
    EXPECT_EQ(ran->result.ended, "interrupted");
    EXPECT_EQ(ran->recorder.steps.size(), 5u);
    EXPECT_EQ(list_checkpoints(setup.places.checkpoints).size(), 1u);
}

// Everything that a step depends on: dropout's random numbers, the optimizer, the schedule, the
// scaler, the moving mean, the position in an epoch that accumulates over its end.
TEST(TrainerTest, ResumedRunGoesOnBitByBit) {
    for (Precision precision : {Precision::fp32, Precision::fp16}) {
        for (std::int64_t cut : {1, 5, 9, 10, 13}) {
            TemporaryFolder folder;
            Wish setup;
            setup.job = {.size = 40, .dropout = 0.3};
            setup.train.log_interval = 1;
            setup.train.accumulation = 2;  // 5 batches, so 3 steps per epoch
            setup.train.schedule = {
                .kind = ScheduleKind::cosine, .highest = 0.01, .warmup_steps = 3};
            setup.train.ema = 0.9;
            setup.train.step.grad_clip = 1;
            setup.train.precision_wish =
                PrecisionWish{.on = precision == Precision::fp16, .type = precision};
            setup.train.epochs = 6;
            auto uninterrupted = train(setup);

            setup.places.checkpoints = folder.path() / "checkpoints";
            setup.stop_after = cut;
            auto first = train(setup);
            EXPECT_EQ(first->result.ended, "interrupted");
            setup.stop_after = -1;
            setup.resume = true;
            auto second = train(setup);

            auto all = uninterrupted->losses(), begun = first->losses(), rest = second->losses();
            ASSERT_FALSE(rest.empty());
            std::map<std::int64_t, double> expected(all.begin(), all.end());
            for (const auto& [step, loss] : rest) EXPECT_EQ(loss, expected.at(step)) << step;
            for (const auto& [step, loss] : begun) EXPECT_EQ(loss, expected.at(step)) << step;
            EXPECT_EQ(*second->result.metric, *uninterrupted->result.metric) << cut;
            EXPECT_EQ(second->recorder.steps.back().step,
                      uninterrupted->recorder.steps.back().step);
        }
    }
}

TEST(TrainerTest, RefusesTheCheckpointOfAnotherModel) {
    TemporaryFolder folder;
    Wish setup;
    setup.places.checkpoints = folder.path() / "checkpoints";
    setup.train.epochs = 1;
    (void)train(setup);
    setup.job.width = 16;
    setup.resume = true;
    std::string path = (setup.places.checkpoints / "step_0000000008/model.safetensors").string();
    try {
        (void)train(setup);
        FAIL();
    } catch (const UserError& error) {
        EXPECT_EQ(
            std::string(error.what()),
            "error: " + path +
                ": the tensors of another model: first.weight is Float [8, 4] there and "
                "Float [16, 4] here, first.bias is Float [8] there and Float [16] here, "
                "last.weight is Float [1, 8] there and Float [1, 16] here\n"
                "  expected: those of the model that the configuration describes\n"
                "  fix:      resume with the configuration that the checkpoint was made with");
    }
}

// Whatever a job throws: the run has failed, with its cause, a summary and the loader's report.
TEST(TrainerTest, AnyExceptionOfAStepEndsTheRunWithItsCause) {
    struct Case {
        std::function<void()> raise;
        std::string found;
    };
    std::vector<Case> cases{
        {[] { throw std::runtime_error("boom"); }, "the job failed in step 5: boom"},
        {[] { throw std::bad_alloc(); }, "the job failed in step 5: the host has no memory left"},
        {[] { throw 7; }, "the job failed in step 5: an exception that is no std::exception"},
        {[] { TORCH_CHECK(false, "torn"); }, "the job failed in step 5: torn"},
        {[] { throw std::system_error(EAGAIN, std::system_category()); },
         "the job failed in step 5: Resource temporarily unavailable"}};
    for (const Case& one : cases) {
        Wish setup;
        setup.train.workers = 2;
        setup.job.at_loss = [&](std::int64_t number) {
            if (number == 5) one.raise();
        };
        auto ran = train(setup);
        EXPECT_EQ(ran->result.ended, "failed");
        ASSERT_TRUE(ran->result.problem);
        EXPECT_EQ(ran->result.problem->found, one.found);
        EXPECT_EQ(ran->recorder.steps.size(), 5u);
        EXPECT_EQ(ran->result.summary.steps, 5);
        EXPECT_THAT(ran->event_text(EventKind::note), HasSubstr("loader: "));
    }
}

// The recorder may go before the trainer does: nothing is told to it after run().
TEST(TrainerTest, NothingIsRecordedAfterRunEvenWhenItThrows) {
    auto backend = make_cpu_backend({.threads = 1}, false);
    set_seed(0);
    SmallJob job(
        {.at_loss = [](std::int64_t number) { SATURATE_CHECK(number < 3, "broken on purpose"); }});
    ListeningObserver observer;
    MemoryRecorder recorder;
    TrainSettings settings = small_settings();
    settings.workers = 2;
    std::size_t told = 0;
    {
        Trainer trainer(job, settings, {}, *backend, observer);
        EXPECT_THROW((void)trainer.run(recorder), Bug);
        told = recorder.events.size();
        EXPECT_GE(told, 1u);  // the loader's report
    }
    EXPECT_EQ(recorder.events.size(), told);
}

// A limit on the size of files stands in for a full disk: writes fail in the middle of a file.
class FullDisk {
  public:
    FullDisk() {
        ::signal(SIGXFSZ, SIG_IGN);
        EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
        rlimit small = before_;
        small.rlim_cur = 300;
        EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    }
    ~FullDisk() { ::setrlimit(RLIMIT_FSIZE, &before_); }

  private:
    rlimit before_{};
};

std::vector<std::string> complaints(const Outcome& ran) {
    std::vector<std::string> out;
    for (const std::string& line : ran.observer.said) {
        if (line.starts_with("no checkpoint")) out.push_back(line);
    }
    return out;
}

TEST(TrainerTest, FullDiskCostsTheCheckpointOnly) {
    TemporaryFolder folder;
    Wish setup;
    setup.train.checkpoint_epochs = 1;
    setup.train.eval_epochs = 0;
    setup.places.checkpoints = folder.path() / "checkpoints";
    setup.train.epochs = 3;
    std::optional<FullDisk> full(std::in_place);
    setup.job.at_loss = [&](std::int64_t number) {
        if (number == 17) full.reset();  // room again before the third epoch's checkpoint
    };
    auto ran = train(setup);
    EXPECT_EQ(ran->result.ended, "done");
    EXPECT_EQ(ran->recorder.steps.size(), 24u);
    auto said = complaints(*ran);
    ASSERT_GE(said.size(), 1u);
    EXPECT_EQ(
        said[0],
        "no checkpoint of step 8, training goes on: " +
            (setup.places.checkpoints / "unfinished_step_0000000008/model.safetensors").string() +
            ": cannot be written: File too large");
    EXPECT_EQ(find_checkpoint(setup.places.checkpoints)->checkpoint.step, 24);
    // Nothing half-written is left behind.
    for (const auto& entry : std::filesystem::directory_iterator(setup.places.checkpoints))
        EXPECT_TRUE(entry.path().filename().string().starts_with("step_")) << entry.path();
}

// What was learnt is nowhere: that is no success.
TEST(TrainerTest, ARunWhoseLastCheckpointCouldNotBeWrittenHasFailed) {
    TemporaryFolder folder;
    Wish setup;
    setup.train.checkpoint_epochs = 1;
    setup.train.eval_epochs = 0;
    setup.places.checkpoints = folder.path() / "checkpoints";
    setup.train.epochs = 1;
    std::string where = setup.places.checkpoints.string();
    auto text = [&](const Outcome& ran) {
        EXPECT_EQ(ran.result.ended, "failed");
        return ran.result.problem ? ran.result.problem->text() : "";
    };
    {
        FullDisk full;
        EXPECT_EQ(text(*train(setup)),
                  "error: " + where +
                      ": the checkpoint of step 8, the last, could not be written: " + where +
                      "/unfinished_step_0000000008/model.safetensors: cannot be written: File too "
                      "large\n"
                      "  expected: room on the disk and permission to write\n"
                      "  fix:      make room, or -o with a folder on another disk; no checkpoint "
                      "was written at all");
    }
    EXPECT_EQ(train(setup)->result.ended, "done");
    setup.train.epochs = 3;
    setup.resume = true;
    FullDisk full;
    EXPECT_THAT(text(*train(setup)), HasSubstr("make room, then --resume goes on from step 8"));
    EXPECT_EQ(find_checkpoint(setup.places.checkpoints)->checkpoint.step, 8);
}

TEST(TrainerTest, RefusesTheCheckpointOfAnotherSeed) {
    TemporaryFolder folder;
    Wish setup;
    setup.places.checkpoints = folder.path() / "checkpoints";
    setup.train.epochs = 1;
    (void)train(setup);
    setup.train.seed = 5;
    setup.resume = true;
    try {
        (void)train(setup);
        FAIL();
    } catch (const UserError& error) {
        EXPECT_THAT(error.what(), HasSubstr("made with seed 0, and it is 5 now\n"
                                            "  expected: the same seed: it gives the order of the "
                                            "data\n  fix:      --set seed=0"));
    }
}

// fp16 has a scaler, fp32 none: what one has no use for is left out, what it lacks begins anew.
TEST(TrainerTest, ResumesInAnotherPrecisionWithANote) {
    for (bool from_fp16 : {true, false}) {
        TemporaryFolder folder;
        Wish setup;
        setup.places.checkpoints = folder.path() / "checkpoints";
        setup.train.epochs = 1;
        auto set = [&](bool fp16) {
            setup.train.precision_wish = PrecisionWish{.on = fp16, .type = Precision::fp16};
        };
        set(from_fp16);
        (void)train(setup);
        set(!from_fp16);
        setup.train.epochs = 2;
        setup.resume = true;
        auto ran = train(setup);
        EXPECT_EQ(ran->result.ended, "done");
        EXPECT_THAT(ran->observer.said,
                    testing::Contains(from_fp16 ? "the gradient scaler of fp16 is not needed here"
                                                : "the gradient scaler of fp16 begins anew"));
    }
}

// The model of a checkpoint is the mean that was evaluated: loaded on its own it has that metric.
TEST(TrainerTest, TheBestOfAMovingMeanIsTheMeanThatWasJudged) {
    TemporaryFolder folder;
    Wish setup;
    setup.train.ema = 0.95;
    setup.places.checkpoints = folder.path() / "checkpoints";
    auto ran = train(setup);
    Checkpoint best = read_checkpoint(setup.places.checkpoints / "best");
    auto backend = make_cpu_backend(setup.train.device, false);
    SmallJob job(setup.job);
    NamedTensors into;
    for (const auto& item : job.model().named_parameters())
        into.emplace_back(item.key(), item.value());
    load_tensors(best.model, into, "best");
    Evaluation judged = evaluate(job, job.validation_data(), {.batch_size = 8, .workers = 0},
                                 *backend, ran->recorder);
    EXPECT_EQ(judged.value, *ran->result.metric_best);
}

}  // namespace
}  // namespace saturate
