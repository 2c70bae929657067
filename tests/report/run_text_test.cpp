// SPDX-License-Identifier: Apache-2.0
// The end of run: the answer first, where a step's time goes, what to do next; then the details.
#include "report/run_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::int64_t kMs = 1'000'000;

// 40 steps of 200 ms, 180 of them waiting for data.
RunAnswer slow_loader() {
    RunAnswer view{.command = {"python", "my train.py", "--epochs=2"}};
    for (int i = 0; i < 40; ++i)
        view.steps.add({.step = i,
                        .duration_ns = 200 * kMs,
                        .samples = 32,
                        .input_wait_ns = 180 * kMs,
                        .backward_ns = 12 * kMs,
                        .optimizer_ns = kMs / 10},
                       0.2);
    view.result = {.duration_ns = 9'000 * kMs, .steps = 40};
    view.result.step_p50_ms = 199.5;
    view.result.step_p99_ms = 240.0;
    view.result.samples_per_second = RunRate{.rate = 160, .low = 160, .high = 160, .n = 1};
    view.records = {"saturate-runs/run-1"};
    view.diagnosis.verdict =
        "biggest cause: waiting for data, 90 % of the step time; the fixes below would make a step "
        "about 2.90 times as fast";
    view.diagnosis.steps = 40;
    view.diagnosis.window_ms = 8000;
    view.diagnosis.findings = {{.id = "F01",
                                .share_percent = 90,
                                .ms_per_step = 180,
                                .evidence = "waiting for the next batch takes 90.0 % of the step "
                                            "time",
                                .fix = "num_workers=8",
                                .where = "my train.py:32 (train)",
                                .gain = {2.14, 2.90, 7.69}}};
    return view;
}

TEST(RunTextTest, TheAnswerStandsFirst) {
    EXPECT_THAT(
        run_text(slow_loader()),
        StartsWith(
            "saturate: biggest cause: waiting for data, 90 % of the step time\n"
            "saturate: the fixes below would make a step about 2.90 times as fast\n"
            "\n"
            "saturate:   a step takes 200.0 ms:\n"
            "saturate:     waiting for data             180.0 ms   90 %  ######### <- cause\n"
            "saturate:     backward pass                 12.0 ms    6 %  #\n"
            "saturate:     forward pass and the rest      7.9 ms    4 %\n"
            "\n"
            "saturate:   next: num_workers=8\n"
            "saturate:   at:   my train.py:32 (train)\n"
            "saturate:   or:   saturate fix -- python 'my train.py' --epochs=2\n"
            "saturate:         tries this, proves the gain and writes a patch\n"
            "\n"
            "saturate: 40 training steps in 9.0 s, median 199.50 ms, p99 240.00 ms, 160 "
            "samples/s\n"
            "\n"
            "saturate:   1. F01 waiting for data: 90.0 %, 180.0 ms per step\n"));
}

TEST(RunTextTest, WithoutACauseThereIsNothingToDoNext) {
    RunAnswer view = slow_loader();
    view.diagnosis.findings.clear();
    view.diagnosis.verdict = "the record shows no cause above 3 %";
    std::string text = run_text(view);
    EXPECT_THAT(text, StartsWith("saturate: the record shows no cause above 3 %\n\nsaturate:   a "
                                 "step takes 200.0 ms:\n"));
    EXPECT_THAT(text, Not(HasSubstr("next:")));
    EXPECT_THAT(text, Not(HasSubstr("<- cause")));
}

TEST(RunTextTest, ACommandWhoseTimeWasUpDidNotEnd) {
    RunAnswer view{.command = {"python", "train.py"}, .torch = "2.5.0", .is_limited = true};
    EXPECT_THAT(run_text(view),
                HasSubstr("the time was up before a PyTorch optimizer made a step"));
    view.torch.clear();
    EXPECT_THAT(run_text(view), HasSubstr("the time was up before it trained"));
}

TEST(RunTextTest, FilesAreNamedFromTheFolderOfTheCommand) {
    RunAnswer view = slow_loader();
    view.folder = "/home/me/job";
    view.diagnosis.findings[0].where = "/home/me/job/models/train.py:32 (train)";
    view.diagnosis.findings[0].evidence = "/home/me/jobs/a.py, /mnt/home/me/job/b.py";
    std::string text = run_text(view);
    EXPECT_THAT(text, HasSubstr("saturate:   at:   models/train.py:32 (train)\n"));
    EXPECT_THAT(text, HasSubstr("seen: /home/me/jobs/a.py, /mnt/home/me/job/b.py\n"));
}

TEST(RunTextTest, ALongCommandIsNotRepeated) {
    RunAnswer view = slow_loader();
    view.command.emplace_back(200, 'x');
    EXPECT_THAT(run_text(view), HasSubstr("saturate:   or:   saturate fix -- COMMAND\n"));
}

}  // namespace
}  // namespace saturate
