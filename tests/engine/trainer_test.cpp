// SPDX-License-Identifier: Apache-2.0
#include "engine/trainer.h"

#include <ATen/record_function.h>
#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <system_error>

#include "small_run.h"

namespace saturate {
namespace {

using testing::HasSubstr;

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
    SmallWish setup;
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

TEST(TrainerTest, EveryStepTellsHowFarTheRunIs) {
    SmallWish setup;
    setup.train.steps = 6;
    auto ran = train(setup);
    const std::vector<TrainPlace>& places = ran->observer.places;
    ASSERT_GE(places.size(), 6u);
    for (std::int64_t i = 0; i < 6; ++i) {
        const TrainPlace& place = places[static_cast<std::size_t>(i)];
        EXPECT_EQ(place.step, i);
        EXPECT_EQ(place.steps, 6);
        // Of the first step nothing is known yet.
        EXPECT_EQ(place.seconds_left.has_value(), i > 0);
    }
}

TEST(TrainerTest, NanStopsWithTheNamedBatch) {
    SmallWish setup;
    setup.job.nan_sample = 0;
    setup.job.size = 8;
    auto ran = train(setup);
    EXPECT_EQ(ran->result.ended, "failed");
    ASSERT_TRUE(ran->result.problem);
    std::string text = ran->result.problem->text();
    EXPECT_TRUE(text.starts_with(
        "error: the loss of step 0 is nan: batch 0 of epoch 0, which begins with sample-"))
        << text;
    EXPECT_THAT(text, HasSubstr("\n"
                                "  expected: a finite loss\n"
                                "  fix:      check these samples; otherwise use a lower "
                                "learning_rate, warmup_steps or grad_clip"));
    EXPECT_GE(ran->count(EventKind::nonfinite_loss), 1);
}

TEST(TrainerTest, ScalerSkipsSingleBadSteps) {
    SmallWish setup;
    setup.job = {.size = 64, .nan_sample = 3};
    setup.train.precision_wish = PrecisionWish{.on = true, .type = Precision::fp16};
    auto ran = train(setup);
    EXPECT_EQ(ran->result.ended, "done");
    EXPECT_EQ(ran->count(EventKind::nonfinite_loss), 4);  // once per epoch
    EXPECT_THAT(ran->event_text(EventKind::nonfinite_loss), HasSubstr("is nan: step skipped"));
    EXPECT_TRUE(std::isfinite(*ran->result.metric));
}

TEST(TrainerTest, HalvesTheMicroBatchWhenMemoryRunsOut) {
    SmallWish plain, tight;
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
    SmallWish setup;
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
    SmallWish setup;
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

// Whatever a job throws: the run has failed, with its cause, a summary and the loader's report.
TEST(TrainerTest, AnyExceptionOfAStepEndsTheRunWithItsCause) {
    struct Case {
        std::function<void()> raise;
        std::string found;
    };
    std::vector<Case> cases{
        {[] { throw std::runtime_error("boom"); }, "the job failed in step 5: boom"},
        {[] { throw std::bad_alloc(); }, "the job failed in step 5: the host has no memory left"},
        {[] { throw 7; }, "the job failed in step 5: an exception of an unknown type"},
        {[] { TORCH_CHECK(false, "torn"); }, "the job failed in step 5: torn"},
        {[] { throw std::system_error(EAGAIN, std::system_category()); },
         "the job failed in step 5: Resource temporarily unavailable"}};
    for (const Case& one : cases) {
        SmallWish setup;
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

}  // namespace
}  // namespace saturate
