// SPDX-License-Identifier: Apache-2.0
#include "report/fix_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/fix_html.h"

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::Not;

FixAnswer answer_of_a_run() {
    FixAnswer answer;
    answer.facts.script = "train.py";
    answer.facts.loops.resize(1);
    auto add = [&](const char* setting, int line, const char* before, const char* after) {
        FixProposal proposal;
        proposal.id = proposal.setting = setting;
        proposal.at = {.file = "train.py", .line = line};
        proposal.before = before;
        proposal.after = after;
        proposal.reason = std::string("the reason of ") + setting;
        answer.plan.proposals.push_back(proposal);
    };
    add("num_workers", 7, "0", "2");
    add("pin_memory", 7, "", "True");
    add("fused_optimizer", 9, "", "True");
    for (const char* id : {"pin_memory", "fused_optimizer"})
        answer.outcomes[id].note = "it does nothing without a GPU";
    return answer;
}

TEST(FixTextTest, WhatWasNotTriedIsToldOncePerReason) {
    FixAnswer answer = answer_of_a_run();
    answer.outcomes["num_workers"] = {FixResult::slower, 0.9, ""};
    std::string text = fix_text(answer, {.was_run = true, .on_gpu = false});
    EXPECT_THAT(text, HasSubstr("Changes that were tried, safe (only the time changes)\n"
                                "  train.py:7  num_workers: 0 -> 2\n"
                                "      the reason of num_workers.\n"
                                "      measured: slower, -10 %\n"));
    EXPECT_THAT(text, HasSubstr("Not tried, and why\n"
                                "  it does nothing without a GPU:\n"
                                "      train.py:7  pin_memory: True\n"
                                "      train.py:9  fused_optimizer: True\n"));
    EXPECT_THAT(text, Not(HasSubstr("the reason of pin_memory")));
    EXPECT_THAT(text, HasSubstr("Nothing that was tried is proven to be faster."));
}

TEST(FixTextTest, OneReasonForSeveralSettingsIsToldOnce) {
    FixAnswer answer;
    answer.facts.script = "train.py";
    answer.facts.loops.resize(1);
    for (const char* setting : {"precision", "tf32"})
        answer.plan.refused.push_back(
            {.at = {.file = "train.py", .line = 9}, .setting = setting, .why = "it is so"});
    answer.plan.refused.push_back(
        {.at = {.file = "train.py", .line = 12}, .setting = "tf32", .why = "it is so"});
    EXPECT_THAT(fix_text(answer, {}), HasSubstr("Left alone, and why\n"
                                                "  train.py:9, 12  precision, tf32\n"
                                                "      it is so.\n"));
}

TEST(FixTextTest, PossibleWaitsStandApartAsTheyAreNotCounted) {
    FixAnswer answer;
    answer.facts.loops.resize(1);
    auto add = [&](const char* kind, int line) {
        FactWait wait;
        wait.file = "train.py";
        wait.line = line;
        wait.kind = kind;
        wait.when = "step";
        wait.certainty = Certainty::likely;
        wait.value_text = "loss";
        answer.facts.waits.push_back(wait);
    };
    add("sync_implicit", 8);
    add("sync_log", 9);
    std::string text = fix_text(answer, {.was_run = false, .on_gpu = true});
    EXPECT_THAT(text, HasSubstr("1 place waits for the GPU in every step"));
    EXPECT_THAT(text, HasSubstr("The program waits for the GPU here, in every step\n"
                                "  train.py:9  loss: "));
    EXPECT_THAT(text, HasSubstr("The program may wait for the GPU here, in every step\n"
                                "  train.py:8  loss: "));
    text = fix_text(answer, {.was_run = true, .on_gpu = false});
    EXPECT_THAT(text, HasSubstr("On a GPU the program would wait for it here, in every step\n"
                                "  train.py:9  loss: "));
}

TEST(FixTextTest, WithoutATrialNothingWasTried) {
    FixAnswer answer = answer_of_a_run();
    answer.outcomes["num_workers"].note = "the steps do not wait for data";
    std::string text = fix_text(answer, {.was_run = true, .on_gpu = false});
    EXPECT_THAT(text, Not(HasSubstr("Changes that were tried")));
    EXPECT_THAT(text, HasSubstr("Nothing was worth a trial here."));
    EXPECT_EQ(fix_verdict(answer, nullptr), "nothing to gain was found");
    answer.outcomes["num_workers"] = {.result = FixResult::no_gain, .ratio = 1.01, .note = ""};
    EXPECT_EQ(fix_verdict(answer, nullptr), "nothing that was tried is faster");
    answer.outcomes["num_workers"] = {.result = FixResult::changed_training,
                                      .note = "the losses differ"};
    EXPECT_EQ(fix_verdict(answer, nullptr), "nothing that was tried could be kept");
    answer.outcomes["num_workers"] = {.note = "there was no time left for it", .lacks_time = true};
    text = fix_text(answer, {.was_run = true, .on_gpu = false});
    EXPECT_THAT(text, HasSubstr("Nothing could be tried within the budget."));
    EXPECT_EQ(fix_verdict(answer, nullptr), "not everything was tried");
    // Nobody knows after Ctrl-C.
    answer.is_interrupted = true;
    text = fix_text(answer, {.was_run = true, .on_gpu = false});
    EXPECT_THAT(text, HasSubstr("It was interrupted before anything could be tried."));
    EXPECT_EQ(fix_verdict(answer, nullptr), "interrupted; not everything was tried");
}

}  // namespace
}  // namespace saturate
