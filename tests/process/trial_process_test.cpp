// SPDX-License-Identifier: Apache-2.0
// Trials of shell scripts that write run records as a job would: what becomes of each end.
#include "process/trial_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/file.h"
#include "support/run.h"
#include "telemetry/trial_note.h"

namespace saturate {
namespace {

class TrialProcessTest : public testing::Test {
  protected:
    // The script finds its run folder in $RUN; `step N` writes steps of 10 ms and 32 samples.
    TrialResult tried(const std::string& script, double seconds = 5) {
        std::string head =
            "RUN=" + (folder_.path() / "run").string() +
            "; mkdir -p $RUN; echo '{\"schema\":1,\"kind\":\"train\"}' > $RUN/run.json\n"
            "steps() { i=0; while [ $i -lt $1 ]; do echo "
            "\"{\\\"step\\\":$i,\\\"t_ns\\\":$((i * 10000000)),\\\"duration_ns\\\":10000000,"
            "\\\"samples\\\":32}\"; i=$((i + 1)); done >> $RUN/steps.jsonl; }\n";
        TrialProcess trial{.command = {"/bin/sh", "-c", head + script},
                           .name = name_,
                           .run_folder = folder_.path() / "run",
                           .log = folder_.path() / "log",
                           .seconds = seconds,
                           .seconds_max = seconds_max_,
                           .start_seconds_max = 0.5,
                           .silence_seconds_max = silence_seconds_max_,
                           .ready_batches = ready_batches_,
                           .grace_seconds = grace_seconds_,
                           .skip_first_epoch = skip_first_epoch_};
        trial.is_stopped = [this] { return stopped_; };
        return run_trial_process(trial);
    }
    TemporaryFolder folder_;
    std::string name_ = "num_workers=4";
    bool stopped_ = false;
    bool skip_first_epoch_ = false;
    double seconds_max_ = 60;
    double silence_seconds_max_ = 0.5;
    std::int64_t ready_batches_ = 0;
    double grace_seconds_ = 15;
};

TEST_F(TrialProcessTest, AJobThatEndsByItselfHasARate) {
    TrialResult result = tried("steps 100");
    EXPECT_EQ(result.outcome, TrialOutcome::ok) << result.message;
    ASSERT_TRUE(result.ok());
    EXPECT_NEAR(result.samples_per_second->per_second, 3200, 1);
}

// Steps of 10 ms, then, once 320 samples were seen, of 1 ms.
TEST_F(TrialProcessTest, TheEpochThatFillsACacheIsNotMeasured) {
    std::string script =
        "echo '{\"schema\":1,\"kind\":\"train\",\"extra\":{\"samples_per_epoch\":320}}' > "
        "$RUN/run.json; steps 10; i=0; while [ $i -lt 10 ]; do echo \"{\\\"step\\\":$((10 + i)),"
        "\\\"t_ns\\\":$((100000000 + i * 1000000)),\\\"duration_ns\\\":1000000,\\\"samples\\\":32}"
        "\"; i=$((i + 1)); done >> $RUN/steps.jsonl";
    skip_first_epoch_ = true;
    TrialResult result = tried(script);
    ASSERT_TRUE(result.ok()) << result.message;
    EXPECT_NEAR(result.samples_per_second->per_second, 32000, 1);
    EXPECT_EQ(result.samples_per_second->dropped, 10);
    EXPECT_EQ(result.samples_per_epoch, 320);
}

// Whether the end of an epoch falls into a run is chance, of which its rate does not depend.
TEST_F(TrialProcessTest, TheOnePauseBetweenEpochsIsNotMeasured) {
    auto with_epochs = [](const std::string& begins) {
        return "i=0; at=1; while [ $i -lt 40 ]; do length=10; case \" " + begins +
               " \" in *\" $i \"*) length=1000; echo \"{\\\"event\\\":\\\"epoch\\\",\\\"t_ns\\\":"
               "$at,\\\"step\\\":$i}\" >> $RUN/events.jsonl;; esac; echo \"{\\\"step\\\":$i,"
               "\\\"t_ns\\\":${at}000000,\\\"duration_ns\\\":${length}000000,\\\"samples\\\":32}\" "
               ">> $RUN/steps.jsonl; at=$((at + length)); i=$((i + 1)); done";
    };
    TrialResult one = tried(with_epochs("0 30"));
    ASSERT_TRUE(one.ok()) << one.message;
    EXPECT_NEAR(one.samples_per_second->per_second, 3200, 1);
    // ... but a run over many epochs is slowed down by all of them.
    TrialResult many = tried("rm $RUN/*.jsonl; " + with_epochs("0 10 18 26 34"));
    ASSERT_TRUE(many.ok()) << many.message;
    EXPECT_LT(many.samples_per_second->per_second, 600);
}

// The progress bars before it are longer than what is read of a log.
TEST_F(TrialProcessTest, TheReasonOfAFailureIsAtTheEndOfALongLog) {
    TrialResult result = tried(
        "yes 'epoch 1, loss 0.5' | head -c 2000000; echo; echo 'ValueError: no data'; exit 1");
    EXPECT_EQ(result.outcome, TrialOutcome::failed);
    EXPECT_EQ(result.message, "ValueError: no data");
}

TEST_F(TrialProcessTest, AJobWhoseRateIsKnownIsEnded) {
    TrialResult result = tried("steps 400; exec sleep 60");
    EXPECT_EQ(result.outcome, TrialOutcome::ok) << result.message;
    EXPECT_LT(result.seconds, 30);
}

// Its own record only knows that it was stopped.
TEST_F(TrialProcessTest, ATrialThatIsEndedIsNotedAsMeasured) {
    (void)tried("steps 400; exec sleep 60");
    TrialNote note = read_trial_note(folder_.path() / "run");
    EXPECT_EQ(note.name, "num_workers=4");
    EXPECT_EQ(note.outcome, "measured");
}

TEST_F(TrialProcessTest, ATrialIsNotedWithWhatBecameOfIt) {
    (void)tried("echo 'CUDA out of memory' >&2; exit 1");
    EXPECT_EQ(read_trial_note(folder_.path() / "run").outcome, "out of memory");
    stopped_ = true;
    (void)tried("exec sleep 60");
    EXPECT_EQ(read_trial_note(folder_.path() / "run").outcome, "interrupted");
}

TEST_F(TrialProcessTest, ARunThatIsNoTrialHasNoNote) {
    name_.clear();
    (void)tried("steps 100");
    EXPECT_FALSE(std::filesystem::exists(trial_note_file(folder_.path() / "run")));
}

// Three steps are there when it is first looked at: the one that compiled is not the rate.
TEST_F(TrialProcessTest, AFirstStepThatCompilesIsNotMeasured) {
    silence_seconds_max_ = 60;
    TrialResult result = tried(
        "echo '{\"step\":0,\"t_ns\":0,\"duration_ns\":27000000000,\"samples\":32}' > "
        "$RUN/steps.jsonl; at() { echo \"{\\\"step\\\":$1,\\\"t_ns\\\":$((27000000000 + $1 * "
        "10000000)),\\\"duration_ns\\\":10000000,\\\"samples\\\":32}\" >> $RUN/steps.jsonl; }; "
        "at 1; at 2; sleep 1; i=3; while [ $i -lt 40 ]; do at $i; i=$((i + 1)); done");
    ASSERT_TRUE(result.ok()) << result.message;
    EXPECT_NEAR(result.samples_per_second->per_second, 3200, 40);
}

// A second of steps whose batches were ready looks well known; then each one is waited for.
TEST_F(TrialProcessTest, BatchesThatWereReadyDoNotEndATrial) {
    silence_seconds_max_ = 60;
    ready_batches_ = 100;
    TrialResult result = tried(
        "t=0; i=0; at() { echo \"{\\\"step\\\":$i,\\\"t_ns\\\":${t}000000,\\\"duration_ns\\\":"
        "${1}000000,\\\"input_wait_ns\\\":${2}000000,\\\"samples\\\":32}\"; t=$((t + $1)); "
        "i=$((i + 1)); }; { at 27000 9; while [ $i -le 100 ]; do at 10 0; done; } > "
        "$RUN/steps.jsonl; sleep 1; while [ $i -le 140 ]; do at 100 90; done >> $RUN/steps.jsonl");
    ASSERT_TRUE(result.ok()) << result.message;
    EXPECT_NEAR(result.samples_per_second->per_second, 320, 10);
}

// A script's background job ignores the signal, and what it starts inherits that.
TEST_F(TrialProcessTest, AJobListensAlsoWhereItsParentDoesNot) {
    auto before = std::signal(SIGINT, SIG_IGN);
    TrialResult result = tried(
        "trap 'echo heard > $RUN/end; exit 0' INT; steps 200; while :; do sleep 0.05; done", 1);
    std::signal(SIGINT, before);
    EXPECT_TRUE(result.ok()) << result.message;
    EXPECT_TRUE(std::filesystem::exists(folder_.path() / "run" / "end"));
}

TEST_F(TrialProcessTest, WhatAJobThatTakesLongToEndToldIsKept) {
    grace_seconds_ = 0.1;
    TrialResult result = tried(
        "trap '' INT; trap 'echo heard > $RUN/end; exit 0' TERM; steps 200; "
        "while :; do sleep 0.05; done",
        1);
    EXPECT_TRUE(result.ok()) << result.message;
    EXPECT_TRUE(std::filesystem::exists(folder_.path() / "run" / "end"));
}

// Scripts ask the terminal that they were started in for its width, and stop where there is none.
TEST_F(TrialProcessTest, AJobHasATerminalThatNobodySitsAt) {
    TrialResult result = tried(
        "stty size > $RUN/size || exit 1; for i in 1 2 3; do read line && exit 1; done; steps 100");
    EXPECT_TRUE(result.ok()) << result.message;
    EXPECT_EQ(read_if_there(folder_.path() / "run" / "size"), "24 80\n");
}

TEST_F(TrialProcessTest, AJobThatDoesNotListenIsKilledWithItsChildren) {
    grace_seconds_ = 0.1;
    TrialResult result = tried("steps 1; trap '' INT; sleep 60 & sleep 60");
    EXPECT_EQ(result.outcome, TrialOutcome::hang);
    EXPECT_EQ(result.message, "it made 1 step, and none in the last 1 s");
}

// Python answers with a traceback, which shows where it stands.
TEST_F(TrialProcessTest, AJobThatStandsStillIsAskedWhere) {
    TrialResult result = tried(
        "trap 'echo line 9 >&2; exit 130' INT; steps 9; while :; do sleep 0.05; done");
    EXPECT_EQ(result.outcome, TrialOutcome::hang);
    EXPECT_EQ(read_if_there(folder_.path() / "log"), "line 9\n");
}

TEST_F(TrialProcessTest, WhatIsKnownWhenItsTimeIsUpCounts) {
    seconds_max_ = 0.3;
    silence_seconds_max_ = 60;
    TrialResult result = tried("steps 20; exec sleep 60");
    EXPECT_EQ(result.outcome, TrialOutcome::ok) << result.message;
    EXPECT_TRUE(result.ok());
}

// Its steps would make a rate, but it will never make another one.
TEST_F(TrialProcessTest, AJobThatStandsStillWhenItsTimeIsUpIsNotMeasured) {
    seconds_max_ = 2;
    silence_seconds_max_ = 20;
    TrialResult result = tried("steps 20; exec sleep 60");
    EXPECT_EQ(result.outcome, TrialOutcome::hang);
    EXPECT_THAT(result.message, testing::StartsWith("it made 20 steps, and none in the last "));
    EXPECT_FALSE(result.ok());
}

TEST_F(TrialProcessTest, AJobThatEvaluatesWhenItsTimeIsUpIsMeasured) {
    seconds_max_ = 2;
    silence_seconds_max_ = 20;
    TrialResult result = tried(
        "steps 20; echo '{\"event\":\"evaluation\",\"t_ns\":200000000,\"duration_ns\":"
        "60000000000,\"step\":20}' > $RUN/events.jsonl; exec sleep 60");
    EXPECT_EQ(result.outcome, TrialOutcome::ok) << result.message;
}

TEST_F(TrialProcessTest, AJobWhoseStepsTakeLongDoesNotStandStill) {
    seconds_max_ = 2;
    silence_seconds_max_ = 20;
    TrialResult result = tried("steps 1; exec sleep 60");
    EXPECT_EQ(result.outcome, TrialOutcome::too_slow);
    EXPECT_EQ(result.message, "1 step in the 2 s it was given");
}

TEST_F(TrialProcessTest, WithoutARateWhenItsTimeIsUpItIsTooSlow) {
    seconds_max_ = 0.3;
    silence_seconds_max_ = 60;
    TrialResult result = tried("steps 3; exec sleep 60");
    EXPECT_EQ(result.outcome, TrialOutcome::too_slow);
    EXPECT_EQ(result.message, "3 steps in the 0 s it was given");
}

TEST_F(TrialProcessTest, AJobThatNeverStartsHangs) {
    TrialResult result = tried("exec sleep 60");
    EXPECT_EQ(result.outcome, TrialOutcome::hang);
}

TEST_F(TrialProcessTest, RunningOutOfMemoryIsAnOutcome) {
    TrialResult result = tried(
        "echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB' >&2; exit 1");
    EXPECT_EQ(result.outcome, TrialOutcome::out_of_memory);
    EXPECT_EQ(result.message,
              "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB");
}

TEST_F(TrialProcessTest, AJobThatShrankItsBatchRanOutOfMemory) {
    TrialResult result = tried(
        "echo '{\"event\":\"out_of_memory\",\"t_ns\":1,\"text\":\"x\"}' > "
        "$RUN/events.jsonl; steps 100");
    EXPECT_EQ(result.outcome, TrialOutcome::out_of_memory);
}

TEST_F(TrialProcessTest, BeingKilledIsOutOfHostMemory) {
    EXPECT_EQ(tried("kill -9 $$").outcome, TrialOutcome::out_of_host_memory);
}

TEST_F(TrialProcessTest, ALossThatIsNoNumberIsAnOutcome) {
    TrialResult result = tried(
        "echo '{\"event\":\"nonfinite_loss\",\"t_ns\":1,\"text\":\"x\"}' > "
        "$RUN/events.jsonl; steps 100");
    EXPECT_EQ(result.outcome, TrialOutcome::nonfinite);
}

TEST_F(TrialProcessTest, AnErrorIsQuotedFromTheLog) {
    TrialResult result = tried("echo start; echo 'error: no such folder'; echo '  fix: x'; exit 2");
    EXPECT_EQ(result.outcome, TrialOutcome::failed);
    EXPECT_EQ(result.message, "error: no such folder");
}

TEST_F(TrialProcessTest, ACrashIsToldByItsSignal) {
    TrialResult result = tried("echo loading; kill -SEGV $$");
    EXPECT_EQ(result.outcome, TrialOutcome::failed);
    EXPECT_EQ(result.message, "it crashed: Segmentation fault (signal 11)");
    result = tried("echo 'RuntimeError: no such operator'; kill -ABRT $$");
    EXPECT_EQ(result.message, "RuntimeError: no such operator");
}

// What follows an exception may speak of errors, too: advice, the name of a variable.
TEST_F(TrialProcessTest, TheExceptionIsTheReasonNotWhatFollowsIt) {
    EXPECT_EQ(reason_in("Error executing job with overrides: []\n"
                        "library.LibraryException(\"no such server\")\n"
                        "full_key: logger\n"
                        "Set the environment variable SHOW_FULL_ERROR=1 for all of it.\n",
                        1),
              "library.LibraryException(\"no such server\")");
    EXPECT_EQ(reason_in("[rank0]: ValueError: 3 is odd\nsaw an error, ending\n", 1),
              "[rank0]: ValueError: 3 is odd");
    EXPECT_EQ(reason_in("an error occurred\nbye\n", 1), "an error occurred");
}

TEST_F(TrialProcessTest, TooFewStepsAreNoMeasurement) {
    TrialResult result = tried("steps 2");
    EXPECT_EQ(result.outcome, TrialOutcome::failed);
    EXPECT_EQ(result.message, "it ended after 2 steps: too few to measure");
}

TEST_F(TrialProcessTest, StopsWhenTheSearchIsStopped) {
    stopped_ = true;
    TrialResult result = tried("steps 10; exec sleep 60");
    EXPECT_EQ(result.message, "stopped");
    EXPECT_LT(result.seconds, 30);
}

}  // namespace
}  // namespace saturate
