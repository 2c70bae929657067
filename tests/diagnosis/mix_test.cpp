// SPDX-License-Identifier: Apache-2.0
// Traces of known causes in known amounts; slow/mixes_test.cpp runs many more of them.
#include <gtest/gtest.h>

#include "base/error.h"
#include "mix_check.h"

namespace saturate {
namespace {

TEST(MixTest, SharesAndGainsAreThoseThatTheMixWasMadeOf) {
    MixScore score = score_mixes(60, 7);
    std::string wrong;
    for (const std::string& one : score.wrong) wrong += one + "\n";
    ASSERT_GE(score.causes, 30) << wrong;
    EXPECT_GE(100 * score.right_shares, 95 * score.causes) << wrong;
    EXPECT_GE(100 * score.right_gains, 90 * score.gains) << wrong;
}

TEST(MixTest, NothingIsToldThatIsNotInTheMix) {
    std::mt19937 random(11);
    for (int i = 0; i < 40; ++i) {
        MixAnswer answer = check_mix(random_mix(random), {.marks_steps = i % 2 == 0});
        EXPECT_EQ(answer.false_alarm, "") << i << ": " << answer.told;
    }
}

// Cut at both ends, with launches that were not recorded, without steps.
TEST(MixTest, ABrokenTraceMakesNoWrongClaimWithHighConfidence) {
    std::mt19937 random(13);
    for (int i = 0; i < 60; ++i) {
        Mix mix = random_mix(random);
        MixOptions options{.marks_steps = i % 3 == 0,
                           .has_stacks = i % 5 == 0,
                           .drops_launches = i % 2 == 0 ? 0.1 * (i % 4) : 0,
                           .cuts_start = 0.1 * (i % 6),
                           .cuts_end = 0.1 * (i % 4),
                           .seed = static_cast<unsigned>(i)};
        MixAnswer answer;
        try {
            answer = check_mix(mix, options);
        } catch (const UserError&) {
            continue;  // nothing was left of it
        }
        EXPECT_EQ(answer.bold, "") << i << ": " << answer.told;
    }
}

Mix one_cause(std::vector<Action> prelude, std::vector<Action> in_each_step) {
    Mix mix;
    mix.prelude = std::move(prelude);
    for (int step = 0; step < 5; ++step) {
        if (step > 0) mix.steps.push_back({Do::step});
        for (const Action& action : in_each_step) mix.steps.push_back(action);
        for (int i = 0; i < 50; ++i) mix.steps.push_back({Do::launch, 8'000, 40'000});
    }
    return mix;
}

Diagnosis diagnosis_of(const Mix& mix, const MixOptions& options = {}) {
    return diagnose_trace(parse_trace(mix.run({}, options).text, "mix.json"));
}

bool has_note(const Diagnosis& diagnosis, std::string_view id) {
    return std::ranges::any_of(diagnosis.health,
                               [&](const HealthNote& note) { return note.id == id; });
}

TEST(MixTest, StartUpIsLeftOut) {
    Mix mix = one_cause({{Do::first_call, 30'000'000}, {Do::first_launch, 5'000'000, 40'000}}, {});
    Diagnosis diagnosis = diagnosis_of(mix, {.marks_steps = false});
    EXPECT_TRUE(has_note(diagnosis, "H4"));
    EXPECT_TRUE(diagnosis.verdict.starts_with("this trace shows start-up")) << diagnosis.verdict;
    EXPECT_GT(*diagnosis.busy_percent, 95);
    EXPECT_LT(*diagnosis.window->whole_busy_percent, 40);
    EXPECT_TRUE(diagnosis.shown(5, false).empty());
    double left = 0;
    for (const auto& [kind, ms] : diagnosis.window->left_out) left += ms;
    EXPECT_NEAR(left, diagnosis.window->whole_ms - diagnosis.window->steady_ms, 0.01);
    // With marks the first step is the profiler's, and is dropped as such.
    EXPECT_GT(*diagnosis_of(mix).busy_percent, 95);
}

TEST(MixTest, RecordingAGraphIsACauseOfItsOwn) {
    Diagnosis once =
        diagnosis_of(one_cause({{Do::record, 60'000'000}}, {}), {.marks_steps = false});
    EXPECT_TRUE(has_note(once, "H5"));
    EXPECT_TRUE(once.shown(5, false).empty());
    EXPECT_GT(*once.busy_percent, 90);
    Diagnosis always = diagnosis_of(one_cause({}, {{Do::record, 4'000'000}}));
    auto found = std::ranges::find(always.findings, "F24", &Finding::id);
    ASSERT_NE(found, always.findings.end()) << always.verdict;
    EXPECT_NE(found->evidence.find("5 of 5 steps"), std::string::npos) << found->evidence;
}

TEST(MixTest, AWaitForWorkThatIsNotInTheTraceIsUnknown) {
    Mix mix = one_cause({}, {});
    Mix::Run run = mix.run();
    // The GPU is done, and yet a call waits for 20 ms.
    std::string text = run.text.substr(0, run.text.size() - 2);
    text += fmt::format(
        R"(,{{"ph":"X","cat":"cuda_runtime","name":"cudaStreamSynchronize","pid":9,"tid":1,"ts":{},"dur":20000}})"
        R"(,{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":1,"ts":{},"dur":5,"args":{{"correlation":9999}}}})"
        R"(,{{"ph":"X","cat":"kernel","name":"late","pid":0,"tid":7,"ts":{},"dur":50,"args":{{"device":0,"stream":7,"correlation":9999}}}}]}})",
        run.end_ns / 1000 + 100, run.end_ns / 1000 + 20'105, run.end_ns / 1000 + 20'112);
    Diagnosis diagnosis = diagnose_trace(parse_trace(text, "t.json"));
    for (const Finding& finding : diagnosis.shown(5, false)) EXPECT_NE(finding.id, "F07");
}

}  // namespace
}  // namespace saturate
