// SPDX-License-Identifier: Apache-2.0
// What a GPU would do to a run, on the fake device: late copies and times, memory that runs out, an
// error that stays, a rank that is lost, steps that are captured.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "engine/fake_device.h"
#include "engine/seed.h"
#include "ranks.h"
#include "small_job.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;

struct FakeRun {
    FakeDevice device;
    TrainResult result;
    MemoryRecorder recorder;
    ListeningObserver observer;
};

void train_on(FakeRun& run, const SmallJobSettings& job_settings, const TrainSettings& settings,
              ProcessGroup* group = nullptr, const TrainPlaces& places = {}, bool resume = false) {
    set_seed(settings.seed);
    SmallJob job(job_settings);
    Trainer trainer(job, settings, places, run.device, run.observer, group);
    if (resume && (!group || group->is_first()))
        trainer.restore(*find_checkpoint(places.checkpoints));
    run.result = trainer.run(run.recorder);
}

// The batch that comes next is loaded only after the step before it was given to the device.
TEST(FakeDeviceTest, AStepDoesNotWaitForTheBatchAfterIt) {
    FakeRun run;
    TrainSettings settings = small_settings();
    settings.eval_epochs = 0;
    train_on(run, {}, settings);
    ASSERT_EQ(run.result.ended, "done") << run.result.problem->text();
    auto at = [&](const std::string& what) {
        return std::ranges::find(run.device.asked, what) - run.device.asked.begin();
    };
    // In the trainer's own thread nothing is loaded ahead: loading would hold up the launch.
    EXPECT_LT(at("end 0"), at("upload 1"));
    EXPECT_LT(at("await 1"), at("begin 1"));
    EXPECT_LT(*run.result.summary.loss_last, *run.result.summary.loss_first);
}

TEST(FakeDeviceTest, OutOfMemoryInAnUploadIsSurvived) {
    FakeRun whole, tight;
    TrainSettings settings = small_settings();
    settings.workers = 2;
    tight.device.no_room_for = {0, 3, 9};
    train_on(whole, {}, settings);
    train_on(tight, {}, settings);
    EXPECT_EQ(tight.result.ended, "done");
    EXPECT_EQ(tight.result.summary.steps, 32);
    EXPECT_EQ(*tight.result.summary.loss_last, *whole.result.summary.loss_last);
}

// Libraries below LibTorch have their own errors for it, in the step as anywhere.
TEST(FakeDeviceTest, ALibraryWithoutMemoryHalvesTheMicroBatch) {
    FakeRun run;
    SmallJobSettings job;
    job.at_loss = [](std::int64_t number) {
        TORCH_CHECK(number != 2,
                    "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`");
    };
    train_on(run, job, small_settings());
    EXPECT_EQ(run.result.ended, "done");
    EXPECT_THAT(
        run.observer.said,
        testing::Contains(HasSubstr("out of memory in step 2: micro-batch 4 instead of 8")));
}

// It begins anew with half of the samples that had no room.
TEST(FakeDeviceTest, AnEvaluationWithoutMemoryTakesFewerSamplesAtOnce) {
    FakeRun whole, tight, none;
    train_on(whole, {}, small_settings());
    train_on(tight, {.evaluates_most = 3}, small_settings());
    ASSERT_EQ(tight.result.ended, "done");
    // The same squares, added up in another order.
    EXPECT_NEAR(*tight.result.metric, *whole.result.metric, 1e-5 * *whole.result.metric);
    EXPECT_THAT(tight.device.asked, testing::Contains("release"));
    train_on(none, {.evaluates_most = 0}, small_settings());
    ASSERT_EQ(none.result.ended, "failed");
    EXPECT_EQ(none.result.problem->found, "out of memory while evaluating one sample: no room");
}

// After an error that stays nothing is read from the device, and the cause is what is told.
TEST(FakeDeviceTest, ALostDeviceIsAskedNoMore) {
    FakeRun run;
    TrainSettings settings = small_settings();
    SmallJobSettings job;
    job.at_loss = [&](std::int64_t number) {
        if (number != 5) return;
        run.device.has_failed = true;
        TORCH_CHECK(false, "CUDA error: device-side assert triggered\nCUDA kernel errors might be");
    };
    train_on(run, job, settings);
    EXPECT_EQ(run.result.ended, "failed");
    ASSERT_TRUE(run.result.problem);
    EXPECT_EQ(run.result.problem->found,
              "the device failed in step 5 or shortly before: CUDA error: device-side assert "
              "triggered");
    EXPECT_THAT(run.result.problem->fix, HasSubstr("CUDA_LAUNCH_BLOCKING=1"));
    EXPECT_EQ(run.result.summary.steps, 5);
    EXPECT_EQ(run.recorder.steps.size(), 5u);
    EXPECT_EQ(run.device.asked_lost, 0);
    EXPECT_TRUE(run.result.device_lost);
    EXPECT_FALSE(run.result.summary.memory_peak_bytes);
}

// From mark to mark is a span, holes included: it is not told as busy time.
TEST(FakeDeviceTest, ASpanIsNotToldAsBusyTime) {
    for (bool exact : {false, true}) {
        FakeRun run;
        run.device.proof.exact_busy = exact;
        train_on(run, {}, small_settings());
        int busy = 0;
        for (const StepRecord& step : run.recorder.steps) {
            busy += step.device_busy_ns ? 1 : 0;
        }
        EXPECT_EQ(busy > 20, exact);
        EXPECT_EQ(busy > 0, exact);
        EXPECT_EQ(run.result.device_span_percent.has_value(), !exact);
        EXPECT_EQ(run.result.summary.busy_percent.has_value(), exact);
        EXPECT_EQ(run.observer.lines.at(0).busy_percent.has_value(), exact);
    }
}

TEST(FakeDeviceTest, EvaluationsUseTheirMemoryAgain) {
    FakeRun once, often;
    TrainSettings settings = small_settings();
    settings.epochs = 1;
    train_on(once, {}, settings);
    settings.epochs = 8;
    train_on(often, {}, settings);
    EXPECT_EQ(once.device.slabs.load(), often.device.slabs.load());
}

// How long the host waited so that the device could catch up, in training and evaluations.
TEST(FakeDeviceTest, AHostThatIsFarAheadWaitsAndSaysSo) {
    for (bool behind : {false, true}) {
        FakeRun run;
        run.device.is_behind = behind;
        TrainSettings settings = small_settings();
        train_on(run, {}, settings);
        ASSERT_EQ(run.result.ended, "done");
        for (const StepRecord& step : run.recorder.steps)
            EXPECT_EQ(step.synchronisation_ns.has_value(), behind);
        EXPECT_GT(run.device.caught_up, static_cast<std::int64_t>(run.recorder.steps.size()));
    }
}

class FakeCollectives final : public DeviceCollectives {
  public:
    // `stuck`: the mark whose sums never come, because the other rank's device is gone. `late`: so
    // often it is asked of each mark before it has passed it.
    explicit FakeCollectives(FakeDevice& device, std::int64_t stuck = 1 << 30, int late = 0)
        : device_(device), stuck_(stuck), late_(late) {}
    std::unique_ptr<PendingCollective> start_sum(torch::Tensor) override { return nullptr; }
    std::unique_ptr<PendingCollective> start_broadcast(torch::Tensor) override { return nullptr; }
    void give_up() noexcept override { device_.asked.emplace_back("abort"); }
    void mark_waiting(std::int64_t) override {}
    void mark_waited(std::int64_t mark) override {
        device_.asked.push_back(fmt::format("summed {}", mark));
        passed_ = mark;
    }
    AtMark stands_at(std::int64_t mark) override {
        if (mark >= stuck_ || asked_[mark]++ < late_) return AtMark::waiting;
        device_.asked.push_back(fmt::format("passed {}", mark));
        return AtMark::passed;
    }
    std::optional<CollectiveTimes> times(std::int64_t mark) override {
        if (mark == kStartMark) device_.asked.emplace_back("start let go");
        if (mark + 3 > passed_) return std::nullopt;  // some steps late
        return CollectiveTimes{.exposed_ns = 7 + mark, .total_ns = 1000 + mark};
    }

  private:
    FakeDevice& device_;
    std::int64_t stuck_, passed_ = -1;
    int late_;
    std::map<std::int64_t, int> asked_;
};

// What the device was given waits for the lost rank: the collectives go first, then it is read.
TEST(FakeDeviceTest, ALostRankIsGivenUpBeforeTheDeviceIsRead) {
    TemporaryFolder folder;
    std::vector<FakeRun> runs(2);
    on_ranks(2, [&](ProcessGroup& group) {
        FakeRun& run = runs[static_cast<std::size_t>(group.rank())];
        group.use_device(std::make_unique<FakeCollectives>(run.device));
        SmallJobSettings job;
        if (group.rank() == 1) {
            job.at_loss = [](std::int64_t number) {
                if (number == 6) throw std::runtime_error("rank 1 breaks");
            };
        }
        TrainSettings settings = small_settings();
        settings.log_interval = 100;
        settings.eval_epochs = 0;
        train_on(run, job, settings, &group, {.checkpoints = folder.path() / "c"});
    });
    EXPECT_EQ(runs[0].result.ended, "failed");
    auto& asked = runs[0].device.asked;
    auto abort = std::ranges::find(asked, "abort"), read = std::ranges::find(asked, "read");
    ASSERT_NE(abort, asked.end());
    ASSERT_NE(read, asked.end());
    EXPECT_LT(abort - asked.begin(), read - asked.begin());
    EXPECT_EQ(list_checkpoints(folder.path() / "c").size(), 1u);
    // The rank that breaks reads its losses too, behind sums that nobody adds to any more.
    auto& own = runs[1].device.asked;
    EXPECT_LT(std::ranges::find(own, "abort") - own.begin(),
              std::ranges::find(own, "synchronise") - own.begin());
}

// The other rank's process is gone, and its device with it, after it agreed to step 5: the sums of
// that step never come. The host is told so instead of waiting for the device, and keeps what the
// device has: the weights of step 4, read before the collectives are given up.
TEST(FakeDeviceTest, SumsThatNeverComeAreNoStep) {
    TemporaryFolder folder;
    std::vector<FakeRun> runs(2);
    on_ranks(2, [&](ProcessGroup& group) {
        FakeRun& run = runs[static_cast<std::size_t>(group.rank())];
        group.use_device(std::make_unique<FakeCollectives>(run.device, 5));
        SmallJobSettings job;
        if (group.rank() == 1) {
            job.at_loss = [](std::int64_t number) {
                if (number == 6) throw std::runtime_error("rank 1 breaks");
            };
        }
        TrainSettings settings = small_settings();
        settings.log_interval = 100;
        settings.eval_epochs = 0;
        train_on(run, job, settings, &group, {.checkpoints = folder.path() / "c"});
    });
    EXPECT_EQ(runs[0].result.ended, "failed");
    EXPECT_THAT(runs[0].result.problem->found, HasSubstr("rank 1 of 2 is lost"));
    auto& asked = runs[0].device.asked;
    auto at = [&](const char* what) { return std::ranges::find(asked, what) - asked.begin(); };
    EXPECT_LT(at("beside"), at("abort"));
    EXPECT_LT(at("abort"), at("read"));
    auto kept = find_checkpoint(folder.path() / "c");
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->checkpoint.step, 5);  // steps 0 to 4: an epoch of four batches, and one more
    EXPECT_EQ(kept->checkpoint.facts["epoch"].integer(), 1);
    EXPECT_EQ(kept->checkpoint.facts["batch"].integer(), 1);
}

// A rank is lost while the first weights are on their way: the host must not wait for its device.
TEST(FakeDeviceTest, WeightsThatNeverComeEndTheRun) {
    std::vector<FakeRun> runs(2);
    on_ranks(
        2,
        [&](ProcessGroup& group) {
            FakeRun& run = runs[static_cast<std::size_t>(group.rank())];
            std::int64_t stuck = group.is_first() ? 1 << 30 : kStartMark;
            group.use_device(std::make_unique<FakeCollectives>(run.device, stuck));
            train_on(run, {}, small_settings(), &group);
        },
        short_times());
    for (const FakeRun& run : runs) {
        EXPECT_EQ(run.result.ended, "failed");
        EXPECT_THAT(run.result.problem->found, HasSubstr("is lost"));
        EXPECT_TRUE(run.recorder.steps.empty());
    }
}

// A step is agreed on once the sums of the one before are whole: further ahead, nobody could say what
// a lost rank has left behind.
TEST(FakeDeviceTest, TheHostIsAtMostAStepAheadOfTheSums) {
    std::vector<FakeRun> runs(2);
    expect_together(2, [&](ProcessGroup& group) {
        FakeRun& run = runs[static_cast<std::size_t>(group.rank())];
        group.use_device(std::make_unique<FakeCollectives>(run.device, 1 << 30, 2));
        TrainSettings settings = small_settings();
        settings.eval_epochs = 0;
        settings.log_interval = 100;
        train_on(run, {}, settings, &group);
    });
    const std::vector<std::string>& asked = runs[0].device.asked;
    auto at = [&](const std::string& what) {
        return std::ranges::find(asked, what) - asked.begin();
    };
    for (int mark = 1; mark < 16; ++mark)
        EXPECT_LT(at(fmt::format("passed {}", mark - 1)), at(fmt::format("summed {}", mark)));
    // What the first weights were sent in is given back before the first step.
    EXPECT_LT(at("passed -1"), at("start let go"));
    EXPECT_LT(at("start let go"), at("summed 0"));
}

// The host waits for the ranks' agreement only; how long the sums took, the device tells.
TEST(FakeDeviceTest, CommunicationIsTheDevicesOwnTime) {
    std::vector<FakeRun> runs(2);
    expect_together(2, [&](ProcessGroup& group) {
        FakeRun& run = runs[static_cast<std::size_t>(group.rank())];
        group.use_device(std::make_unique<FakeCollectives>(run.device));
        train_on(run, {}, small_settings(), &group);
    });
    const std::vector<StepRecord>& steps = runs[1].recorder.steps;
    ASSERT_EQ(steps.size(), 16u);
    for (std::size_t i = 0; i < 13; ++i) {
        EXPECT_EQ(steps[i].communication_ns, 7 + static_cast<std::int64_t>(i));
        EXPECT_EQ(steps[i].communication_total_ns, 1000 + static_cast<std::int64_t>(i));
    }
    for (std::size_t i = 13; i < 16; ++i) EXPECT_FALSE(steps[i].communication_ns);  // not told
    EXPECT_GT(*runs[1].result.communication_percent, 0);
}

// 4 workers would keep 256 batches ready. Each is a page.
TEST(FakeDeviceTest, PrefetchedBatchesTakeAShareOfTheMemory) {
    TrainSettings settings = small_settings();
    settings.workers = 4;
    settings.prefetch_factor = 64;
    settings.eval_epochs = 0;
    settings.epochs = 1;
    for (std::uint64_t pages : {8 * 10, 1}) {
        FakeRun run;
        settings.memory_bytes = pages * 4096;
        train_on(run, {.size = 2048}, settings);
        EXPECT_EQ(run.result.ended, "done");
        // What is held by the step, is to come next and is being copied, and two more.
        std::int64_t most = pages == 1 ? 1 + 1 + 2 + 2 : 10;
        EXPECT_LE(run.device.slabs.load(), most);
        EXPECT_EQ(run.device.copies_most, kCopiesHeld);
        EXPECT_EQ(run.result.room.batches, most - 1);
        EXPECT_EQ(run.result.room.bytes, static_cast<std::uint64_t>(most) * 4096);
        EXPECT_THAT(run.observer.said,
                    testing::Contains(HasSubstr("batches ahead instead of 256")));
    }
    FakeRun roomy;
    settings.memory_bytes = std::uint64_t{1} << 30;
    train_on(roomy, {.size = 2048}, settings);
    EXPECT_EQ(roomy.result.room.batches, 256);
    EXPECT_THAT(roomy.observer.said, testing::Not(testing::Contains(HasSubstr("prefetch"))));
}

TEST(FakeDeviceTest, EveryRankGoesOnWithItsOwnRandomNumbers) {
    TemporaryFolder folder;
    std::vector<FakeRun> first(2), resumed(2);
    TrainPlaces places{.checkpoints = folder.path() / "c"};
    auto of = [](int number) { return torch::full({16}, number, torch::kByte); };
    auto run = [&](std::vector<FakeRun>& runs, int number, std::int64_t epochs, bool resume) {
        TrainSettings settings = small_settings();
        settings.epochs = epochs;
        expect_together(static_cast<int>(runs.size()), [&](ProcessGroup& group) {
            FakeRun& own = runs[static_cast<std::size_t>(group.rank())];
            own.device.random = of(number + group.rank());
            group.use_device(std::make_unique<FakeCollectives>(own.device));
            train_on(own, {}, settings, &group, places, resume);
        });
    };
    run(first, 10, 1, false);
    run(resumed, 77, 2, true);
    EXPECT_EQ(resumed[0].result.ended, "done");
    EXPECT_TRUE(torch::equal(*resumed[0].device.random, of(10)));
    EXPECT_TRUE(torch::equal(*resumed[1].device.random, of(11)));
}

// As after resuming on other devices, or on more of them: the seed alone would be everybody's.
TEST(FakeDeviceTest, ARankWithoutAStateIsSeededByItsNumber) {
    set_seed(5);
    expect_together(2, [&](ProcessGroup& group) {
        FakeDevice device;
        make_ranks(&group)->set_random_states(device, {}, 5, 3);
    });
    // Ranks are threads here and share the host's generator, which rank 0 leaves alone.
    EXPECT_NE(at::globalContext().defaultGenerator(torch::kCPU).current_seed(), 5u);
}

// A GPU's random numbers mean nothing to a CPU, and the other way round: said, not refused.
TEST(FakeDeviceTest, ACheckpointResumesOnAnotherDeviceWithANote) {
    for (bool from_gpu : {true, false}) {
        TemporaryFolder folder;
        TrainPlaces places{.checkpoints = folder.path() / "c"};
        TrainSettings settings = small_settings();
        FakeRun before, after;
        (from_gpu ? before : after).device.random = torch::zeros({16}, torch::kByte);
        settings.epochs = 1;
        settings.precision_wish = PrecisionWish{.on = true, .type = Precision::fp16};
        train_on(before, {}, settings, nullptr, places);
        settings.epochs = 2;
        settings.precision_wish->type = Precision::bf16;
        train_on(after, {}, settings, nullptr, places, true);
        EXPECT_EQ(after.result.ended, "done");
        EXPECT_EQ(after.recorder.steps.size(), 8u);
        EXPECT_THAT(
            after.observer.said,
            testing::IsSupersetOf(
                {std::string(from_gpu ? "the random state saved on another device is not used here"
                                      : "random numbers on this device start from the seed"),
                 std::string("the gradient scaler of fp16 is not needed here")}));
    }
}

// Its first step may be the short one at the end of an epoch.
TEST(CapturedStepTest, OfAResumedRunIsOfTheFullShapeToo) {
    TemporaryFolder folder;
    TrainPlaces places{.checkpoints = folder.path() / "c"};
    TrainSettings settings = small_settings();
    settings.accumulation = 2;
    settings.step.capture = true;
    SmallJobSettings job{.size = 40};  // steps of 16, 16 and 8 samples
    FakeRun begun, resumed;
    begun.observer.stop_after = 2;
    train_on(begun, job, settings, nullptr, places);
    ASSERT_EQ(begun.result.ended, "interrupted");
    train_on(resumed, job, settings, nullptr, places, true);
    ASSERT_EQ(resumed.result.ended, "done");
    EXPECT_EQ(resumed.recorder.steps.front().samples, 8);
    EXPECT_THAT(resumed.observer.said,
                testing::Contains("the step is captured as one graph of 16 samples"));
}

struct Course {
    StepSettings step = {};
    SmallJobSettings job = {};
    std::vector<std::vector<std::int64_t>> steps;  // sizes of the batches of each
};

struct Ended {
    std::vector<torch::Tensor> weights;
    std::vector<float> losses;
    std::vector<std::string> notes;
};

Ended run_steps(DeviceBackend& device, Course course) {
    set_seed(5);
    SmallJob job(course.job);
    TrainingStep step(job, course.step, device);
    Ended out;
    for (std::size_t i = 0; i < course.steps.size(); ++i) {
        std::vector<TensorBatch> batches;
        for (std::int64_t size : course.steps[i]) {
            torch::Tensor x =
                torch::sin(torch::arange(size * 4).view({size, 4}) * static_cast<double>(i + 1));
            batches.push_back({x, x.sum(1, true)});
        }
        step.run(batches, std::ldexp(1.0, -5 - static_cast<int>(i % 3)));  // another rate each time
        if (std::string note = step.take_note(); !note.empty()) out.notes.push_back(note);
        out.losses.push_back(step.loss().item<float>());
    }
    for (const torch::Tensor& weight : job.model().parameters())
        out.weights.push_back(weight.detach().clone());
    return out;
}

// The same operations in the same order, so the same numbers.
void expect_equal(const Ended& a, const Ended& b) {
    EXPECT_EQ(a.losses, b.losses);
    for (std::size_t i = 0; i < a.weights.size(); ++i)
        EXPECT_TRUE(torch::equal(a.weights[i], b.weights[i])) << i;
}

TEST(CapturedStepTest, EqualsTheStepItself) {
    auto cpu = make_cpu_backend({.threads = 1}, false);
    for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd}) {
        for (Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16}) {
            for (double clip : {0.0, 0.5}) {
                Course course{.step = {.precision = precision, .capture = true, .grad_clip = clip}};
                course.step.optimizer.kind = kind;
                course.steps.assign(9, {6, 2});
                FakeDevice device;
                Ended captured = run_steps(device, course);
                expect_equal(captured, run_steps(*cpu, course));
                EXPECT_EQ(device.captures, 1);
                EXPECT_EQ(captured.notes, std::vector<std::string>{
                                              "the step is captured as one graph of 8 samples"});
            }
        }
    }
}

// Whichever comes first or fourth: the full step is captured, the short one never.
TEST(CapturedStepTest, IsOfTheFullShape) {
    auto cpu = make_cpu_backend({.threads = 1}, false);
    Course course{.step = {.capture = true, .full = 8}};
    course.steps = {{8}, {8}, {8}, {3}, {8}, {8}, {3}, {8}, {8}};
    FakeDevice device;
    Ended captured = run_steps(device, course);
    expect_equal(captured, run_steps(*cpu, course));
    EXPECT_EQ(device.captures, 1);
    EXPECT_EQ(captured.notes, (std::vector<std::string>{
                                  "steps that do not have 8 samples run without the captured graph",
                                  "the step is captured as one graph of 8 samples"}));
}

TEST(CapturedStepTest, ThatCannotBeRunsAsItIs) {
    auto cpu = make_cpu_backend({.threads = 1}, false);
    Course course{.step = {.capture = true}};
    course.steps.assign(7, {8});
    Ended plain = run_steps(*cpu, course);
    int losses = 0;
    course.job.at_loss = [&](std::int64_t number) {
        losses = static_cast<int>(number) + 1;
        (void)torch::ones({}).item();  // reads a value back
    };
    FakeDevice device;
    Ended ended = run_steps(device, course);
    expect_equal(ended, plain);
    ASSERT_EQ(ended.notes.size(), 1u);
    EXPECT_THAT(ended.notes[0], HasSubstr("the step cannot be captured and runs without a graph: "
                                          "operation not permitted when stream is capturing"));
    EXPECT_EQ(device.captures, 1);
}

// The weights are as before: the step can be run again with half the micro-batch.
TEST(CapturedStepTest, SurvivesRunningOutOfMemory) {
    for (std::int64_t at : {1, 3, 5}) {  // in the warm-up, in the capture, in the third replay
        FakeDevice device;
        if (at == 5) device.replay_fails = 2;
        set_seed(5);
        SmallJob job({.at_loss = [&](std::int64_t number) {
            TORCH_CHECK_WITH(OutOfMemoryError, number != at || at == 5, "no room");
        }});
        TrainingStep step(job, {.capture = true}, device);
        TensorBatch batch{torch::ones({8, 4}), torch::ones({8, 1})};
        for (std::int64_t i = 0; i < at; ++i) step.run({&batch, 1}, 0.01);
        torch::Tensor before = job.model().parameters()[0].detach().clone();
        EXPECT_THROW(step.run({&batch, 1}, 0.01), c10::OutOfMemoryError);
        EXPECT_TRUE(torch::equal(before, job.model().parameters()[0].detach()));
        step.set_split(2);
        step.run({&batch, 1}, 0.01);
        EXPECT_FALSE(torch::equal(before, job.model().parameters()[0].detach()));
        EXPECT_THAT(step.take_note(), HasSubstr("no longer captured"));
    }
}

// The graph holds the second run too, with the weights as they are then.
TEST(CapturedStepTest, ComputesActivationsAgain) {
    auto cpu = make_cpu_backend({.threads = 1}, false);
    for (Precision precision : {Precision::fp32, Precision::bf16}) {
        Course course{.step = {.precision = precision, .capture = true}};
        course.steps.assign(9, {8});
        Ended kept = run_steps(*cpu, course);
        course.job.recomputes = true;
        FakeDevice device;
        expect_equal(run_steps(device, course), kept);
        EXPECT_EQ(device.captures, 1);
    }
}

// A graph has no state of the generator to go back to: said, and trained without a graph.
TEST(CapturedStepTest, WithDropoutThatComesAgainRunsAsItIs) {
    auto cpu = make_cpu_backend({.threads = 1}, false);
    Course course{.step = {.capture = true}, .job = {.dropout = 0.5, .width = 16}};
    course.steps.assign(7, {8});
    Ended kept = run_steps(*cpu, course);
    course.job.recomputes_dropout = true;
    FakeDevice device;
    Ended ended = run_steps(device, course);
    expect_equal(ended, kept);
    EXPECT_EQ(device.captures, 1);
    EXPECT_EQ(ended.notes, std::vector<std::string>{
                               "the step cannot be captured and runs without a graph: gradient "
                               "checkpointing would have to draw the same random numbers again, "
                               "which a graph cannot"});
}

TEST(CapturedStepTest, DropsOutOtherUnitsEachTime) {
    FakeDevice device;
    Course course{.step = {.capture = true}, .job = {.dropout = 0.5, .width = 64}};
    set_seed(5);
    SmallJob job(course.job);
    TrainingStep step(job, course.step, device);
    TensorBatch batch{torch::ones({8, 4}), torch::ones({8, 1})};
    std::set<float> losses;
    for (int i = 0; i < 8; ++i) {
        step.run({&batch, 1}, 0.0);  // the weights stay, so only the units differ
        losses.insert(step.loss().item<float>());
    }
    EXPECT_EQ(device.captures, 1);
    EXPECT_GT(losses.size(), 5u);
}

}  // namespace
}  // namespace saturate
