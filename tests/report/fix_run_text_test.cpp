// SPDX-License-Identifier: Apache-2.0
#include "report/fix_run_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/fix_html.h"

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(FixRunTextTest, AJobThatFailsIsToldInItsOwnWords) {
    TrialResult job{.outcome = TrialOutcome::failed, .message = "ValueError: no data"};
    EXPECT_EQ(fix_failure_text(job, "loading\n\nsaturate: watched\nValueError: no data\n"),
              "Your job fails without any change: ValueError: no data; its last lines:\n"
              "    loading\n"
              "    ValueError: no data\n");
}

TEST(FixRunTextTest, AJobThatEndsEarlyDidNotFail) {
    TrialResult job{.outcome = TrialOutcome::failed,
                    .message = "it ended after 0 steps: too few to measure"};
    std::string none = fix_failure_text(job, "");
    EXPECT_THAT(none, HasSubstr("Your job ended, and no training step of PyTorch was seen; it "
                                "printed nothing\n"));
    EXPECT_THAT(none, HasSubstr("fix: name the training script"));
    job.record.steps.resize(1);
    std::string one = fix_failure_text(job, "epoch 1\n");
    EXPECT_THAT(one, HasSubstr("Your job ended after 1 training step: too few to measure; its last "
                               "lines:\n    epoch 1\n"));
    EXPECT_THAT(one, HasSubstr("fix: a trial needs a few seconds of training"));
}

// A script whose main program logs every exception ends with status 0.
TEST(FixRunTextTest, AnErrorThatTheJobCatchesIsItsError) {
    TrialResult job{.outcome = TrialOutcome::failed,
                    .message = "it ended after 0 steps: too few to measure"};
    std::string text = fix_failure_text(job,
                                        "ERROR - Traceback (most recent call last):\n"
                                        "  File \"main.py\", line 3, in main\n"
                                        "    runner.train()\n"
                                        "ValueError: no data\n\nbye\n");
    EXPECT_THAT(text, HasSubstr("Your job catches an error and ends, after 0 training steps: "
                                "ValueError: no data; its last lines:\n"));
    EXPECT_THAT(text, testing::Not(HasSubstr("fix:")));
}

TEST(FixRunTextTest, WhatToDoFollowsFromWhatTheScriptSays) {
    TrialResult job{.outcome = TrialOutcome::failed, .message = "error"};
    EXPECT_THAT(fix_failure_text(job, "ModuleNotFoundError: No module named 'torch'"),
                HasSubstr("fix: this Python has no PyTorch"));
    EXPECT_THAT(fix_failure_text(job, "ModuleNotFoundError: No module named 'models'"),
                HasSubstr("from the same folder"));
    EXPECT_THAT(fix_failure_text(job, "OSError: [Errno 28] No space left on device"),
                HasSubstr("fix: the disk is full"));
    job.message = "FileNotFoundError: [Errno 2] No such file or directory: 'data/train'";
    EXPECT_THAT(fix_failure_text(job, job.message),
                HasSubstr("fix: start it in the folder where you normally do"));
    job.outcome = TrialOutcome::out_of_host_memory;
    EXPECT_THAT(fix_failure_text(job, "Killed"),
                HasSubstr("runs out of memory without any change"));
}

TEST(FixRunTextTest, OneWithLongStepsDoesNotNeedLongerToStart) {
    TrialResult job{.outcome = TrialOutcome::too_slow,
                    .message = "1 step in the 90 s it was given"};
    job.record.steps.resize(1);
    std::string text = fix_failure_text(job, "epoch 1\n");
    EXPECT_THAT(text, HasSubstr("Your job could not be measured: 1 step in the 90 s"));
    EXPECT_THAT(text, HasSubstr("fix: its steps take long; give it time: --budget 30m"));
}

TEST(FixRunTextTest, OneThatStandsStillInTheMiddleDoesNotNeedLongerToStart) {
    TrialResult job{.outcome = TrialOutcome::hang, .message = "no training step within 9 s"};
    EXPECT_THAT(fix_failure_text(job, "epoch 1\n"), HasSubstr("longer to start"));
    job.record.steps.resize(12);
    job.message = "it made 12 steps, and none in the last 120 s";
    std::string text = fix_failure_text(job, "epoch 1\n");
    EXPECT_THAT(text, HasSubstr("Your job stopped training: it made 12 steps, and none in the "
                                "last 120 s; its last lines:\n"));
    EXPECT_THAT(text, HasSubstr("py-spy dump"));
    EXPECT_THAT(text, Not(HasSubstr("longer to start")));
}

TEST(FixRunTextTest, ATracebackOfTheInterruptionShowsWhereItStoodStill) {
    TrialResult job{.outcome = TrialOutcome::hang, .message = "it made 12 steps, and none in the"};
    job.record.steps.resize(12);
    std::string text = fix_failure_text(job,
                                        "epoch 1\nTraceback (most recent call last):\n"
                                        "  File \"train.py\", line 9, in <module>\n"
                                        "    lock.acquire()\nKeyboardInterrupt\n");
    EXPECT_THAT(text, HasSubstr("line 9, in <module>\n"));
    EXPECT_THAT(text, HasSubstr("fix: these lines show where it was interrupted"));
}

TEST(FixRunTextTest, WhatLackedTimeIsNamedWithTheCommandThatHasIt) {
    auto with_budget = [](const std::string& budget) { return "saturate fix --budget " + budget; };
    FixAnswer answer;
    answer.longer = "12m";
    EXPECT_EQ(with_more_time_text(answer, nullptr, with_budget), "") << "nothing was left";
    answer.plan.proposals = {{.id = "compile", .setting = "compile"},
                             {.id = "precision", .setting = "precision"},
                             {.id = "precision-2", .setting = "precision"},
                             {.id = "threads", .setting = "threads"}};
    for (const char* id : {"compile", "precision", "precision-2"})
        answer.outcomes[id].lacks_time = true;
    EXPECT_EQ(with_more_time_text(answer, nullptr, with_budget),
              "not tried, for lack of time: compile, precision\n"
              "with more time: saturate fix --budget 12m\n");
    Proof proof;
    EXPECT_EQ(with_more_time_text(answer, &proof, with_budget),
              "not tried, for lack of time: compile, precision\n"
              "with more time: saturate fix --budget 12m\n");
    proof.longer = "20m";
    answer.outcomes.clear();
    EXPECT_EQ(with_more_time_text(answer, &proof, with_budget),
              "with more time: saturate fix --budget 20m\n");
    answer.is_interrupted = true;
    EXPECT_EQ(with_more_time_text(answer, &proof, with_budget), "");
}

TEST(FixRunTextTest, WhatSpeaksOfAGpuMayNeedOne) {
    const std::string hint = "fix: this machine has no GPU: if your job needs one, run fix on";
    auto text = [](const char* message, bool has_gpu) {
        TrialResult job{.outcome = TrialOutcome::failed, .message = message};
        return fix_failure_text(job, message, has_gpu);
    };
    EXPECT_THAT(text("AssertionError: this needs a GPU", false), HasSubstr(hint));
    EXPECT_THAT(text("RuntimeError: nccl requires at least one CUDA device", false),
                HasSubstr(hint));
    EXPECT_THAT(text("RuntimeError: CUDA error: an illegal access", true), Not(HasSubstr("fix:")));
    EXPECT_THAT(text("FileNotFoundError: data/gpu.csv", false), Not(HasSubstr("no GPU")));
    const char* none = "AssertionError: Torch not compiled with CUDA enabled";
    EXPECT_THAT(text(none, false), HasSubstr("fix: it needs a GPU, and this machine has none"));
    EXPECT_THAT(text(none, true), HasSubstr("PyTorch cannot use the GPU of this machine"));
}

// Its place in PyTorch helps nobody; Python's marks and a progress bar's past take the room.
TEST(FixRunTextTest, ATracebackNamesTheLineOfTheUser) {
    std::string log =
        "  0 %|  |\r 50 %|# |\rTraceback (most recent call last):\n"
        "  File \"/home/me/train.py\", line 9, in <module>\n    main()\n"
        "  File \"/home/me/train.py\", line 5, in main\n    model.cuda()\n";
    for (int line : {1, 2, 3, 4})
        log += "  File \"/usr/lib/python3/site-packages/torch/module.py\", line " +
               std::to_string(line) + ", in apply\n    fn(t)\n    ^^~~^\n";
    TrialResult job{.outcome = TrialOutcome::failed, .message = "RuntimeError: no"};
    EXPECT_EQ(fix_failure_text(job, log + "RuntimeError: no\n"),
              "Your job fails without any change: RuntimeError: no; its last lines:\n"
              "      File \"/home/me/train.py\", line 5, in main\n"
              "        model.cuda()\n"
              "      ...\n"
              "      File \"/usr/lib/python3/site-packages/torch/module.py\", line 3, in apply\n"
              "        fn(t)\n"
              "      File \"/usr/lib/python3/site-packages/torch/module.py\", line 4, in apply\n"
              "        fn(t)\n"
              "    RuntimeError: no\n");
}

TEST(FixRunTextTest, AnOpenQuestionIsTold) {
    TrialResult job{.outcome = TrialOutcome::hang, .message = "no training step within 30 s"};
    EXPECT_THAT(fix_failure_text(job, "press y to start: "),
                HasSubstr("fix: if it waits for keyboard input"));
    EXPECT_THAT(fix_failure_text(job, "loading\n"), HasSubstr("fix: if it only needs longer"));
    std::string shown = fix_failure_text(job, std::string(5000, 'x'));
    EXPECT_THAT(shown, HasSubstr("    " + std::string(200, 'x') + "...\n"));
}

TEST(FixRunTextTest, WhyItIsSlowNamesTheCauses) {
    Rate rate{.per_second = 100, .step_seconds = 0.32};
    Finding wait{.id = "F01", .evidence = "waiting for the next batch takes 60 % of the step time"};
    wait.where = "train.py:12 (main)";
    Finding part{.id = "F02", .evidence = "num_workers is 0", .part_of = "F01"};
    EXPECT_EQ(fix_why_text(rate, {wait, part}),
              "\nWhy it is slow: 100 samples/s, 320.0 ms per step\n"
              "  waiting for data  train.py:12 (main)\n"
              "      waiting for the next batch takes 60 % of the step time\n");
    EXPECT_THAT(fix_why_text(rate, {}), HasSubstr("no cause was found"));
}

TEST(FixHtmlTest, APartOfACauseIsNoCauseOfItsOwn) {
    FixAnswer answer;
    Finding wait{.id = "F01", .evidence = "waiting for the next batch"};
    Finding part{.id = "F02", .evidence = "num_workers is 0", .part_of = "F01"};
    FixPage page{.answer = answer,
                 .command = "python train.py",
                 .baseline = std::nullopt,
                 .findings = {wait, part},
                 .losses_before = {},
                 .losses_after = {}};
    EXPECT_THAT(fix_html(page), HasSubstr("waiting for the next batch"));
    EXPECT_THAT(fix_html(page), testing::Not(HasSubstr("num_workers is 0")));
}

TEST(FixHtmlTest, ShowsWhatThereIsAndNamesABusyMachine) {
    FixAnswer answer;
    FixPage page{.answer = answer,
                 .command = "python train.py",
                 .baseline = std::nullopt,
                 .findings = {},
                 .losses_before = {{32, 2.3}, {64, 2.1}},
                 .losses_after = {},
                 .busy = "other work uses 1.4 of the 2 cores"};
    std::string html = fix_html(page);
    EXPECT_THAT(html, HasSubstr("other work uses 1.4 of the 2 cores"));
    EXPECT_THAT(html, HasSubstr("</i>before</li>"));
    EXPECT_THAT(html, testing::Not(HasSubstr("</i>after</li>")));
}

TEST(FixHtmlTest, WhatIsKeptComesFirstWithItsReasonAndWhatWasNotTriedLast) {
    FixAnswer answer;
    for (const char* id : {"tf32", "compile", "threads"})
        answer.plan.proposals.push_back(
            {.id = id, .setting = id, .after = "1", .reason = std::string("why ") + id});
    answer.outcomes["compile"] = {.result = FixResult::slower, .ratio = 0.9};
    answer.outcomes["threads"] = {.result = FixResult::kept, .ratio = 1.5};
    std::string html = fix_html({.answer = answer, .command = "python train.py"});
    EXPECT_LT(html.find("threads: 1"), html.find("compile: 1"));
    EXPECT_LT(html.find("compile: 1"), html.find("tf32: 1"));
    EXPECT_THAT(html, HasSubstr("why threads"));
    EXPECT_THAT(html, testing::Not(HasSubstr("why tf32")));
}

TEST(FixHtmlTest, SpeaksTheReadersLanguage) {
    FixAnswer answer;
    answer.plan.proposals = {
        {.id = "num_workers", .setting = "num_workers", .before = "0", .after = "8"}};
    answer.outcomes["num_workers"] = {.result = FixResult::kept, .ratio = 5.2};
    Proof proof{.unit = "samples/s"};
    for (int i = 0; i < 5; ++i) proof.pairs.emplace_back(150 + i, 780 + i);
    judge(proof);
    Finding wait{.id = "F01", .share_percent = 90, .evidence = "num_workers is 0"};
    FixPage page{.answer = answer,
                 .command = "python train.py",
                 .baseline = Rate{.per_second = 100, .step_seconds = 0.32},
                 .findings = {wait},
                 .proof = &proof,
                 .losses_before = {{32, 2.3}, {64, 2.1}},
                 .losses_after = {{32, 2.3}, {64, 2.1}},
                 .trials = 14,
                 .seconds = 170};
    constexpr const char* kEnglish[] = {
        "Why it is slow", "What was tried", "outcome",    ">kept<",  "The proof",       "pair 1",
        "before",         "Losses",         "64 samples", "14 runs", "waiting for data"};
    std::string english = fix_html(page);
    EXPECT_THAT(english, HasSubstr("<html lang=\"en\">"));
    for (const char* words : kEnglish) EXPECT_THAT(english, HasSubstr(words));
    page.language = Language::chinese;
    std::string chinese = fix_html(page);
    EXPECT_THAT(chinese, HasSubstr("<html lang=\"zh-CN\">"));
    chinese = chinese.substr(chinese.find("<main>"));
    for (const char* words : kEnglish) EXPECT_THAT(chinese, testing::Not(HasSubstr(words)));
    EXPECT_THAT(chinese, HasSubstr("num_workers: 0 -&gt; 8"));
}

}  // namespace
}  // namespace saturate
