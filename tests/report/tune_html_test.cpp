// SPDX-License-Identifier: Apache-2.0
#include "report/tune_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::Not;

class TuneHtmlTest : public testing::Test {
  protected:
    TuneHtmlTest() {
        request_.job.command = {"python", "train.py", "--name", "<b>"};
        request_.device = "cpu";
        Rate rate{.per_second = 100, .low = 95, .high = 104, .n = 4};
        Rate better{.per_second = 400, .low = 390, .high = 410, .n = 4};
        answer_.search.baseline = rate;
        answer_.search.trials = {
            {.cause = "baseline", .reason = "the configuration without any change", .rate = rate},
            {.cause = "loader",
             .reason = "the next batch is made while this one is computed",
             .change = {{"num_workers", "4"}},
             .rate = better,
             .ratio = 4,
             .kept = true},
            {.cause = "batch size",
             .change = {{"batch_size", "4096"}},
             .outcome = TrialOutcome::out_of_memory,
             .message = "CUDA out of memory"}};
        answer_.search.best = {{"num_workers", "4"}};
        answer_.search.ended = "no cause above 3 % is left";
    }
    std::string page(Language language = Language::english) {
        return tune_html({.request = request_,
                          .answer = answer_,
                          .is_proven = answer_.proof.has_value(),
                          .machine = "a CPU, 2 cores",
                          .began_wall_ns = 1'700'000'000'000'000'000,
                          .language = language});
    }
    TuneRequest request_;
    TuneAnswer answer_;
};

TEST_F(TuneHtmlTest, ShowsWhatWasTriedKeptAndProven) {
    Proof proof{.unit = "samples/s",
                .pairs = {{100, 400}, {101, 402}, {99, 398}, {100, 401}, {100, 399}}};
    judge(proof);
    answer_.proof = proof;
    std::string text = page();
    EXPECT_THAT(text, HasSubstr("<h1>4.00 times as fast, proven in 5 pairs of runs</h1>"));
    EXPECT_THAT(text, HasSubstr("<svg"));
    EXPECT_THAT(text, HasSubstr("<th scope=\"row\">num_workers=4</th><td>400 (390..410)</td>"
                                "<td>+300 %</td><td><b>kept</b></td>"));
    EXPECT_THAT(text, HasSubstr("<td>out of memory</td>"));
    EXPECT_THAT(text, HasSubstr("CUDA out of memory"));
    EXPECT_THAT(text, HasSubstr("--set num_workers=4"));
    EXPECT_THAT(text, HasSubstr("a CPU, 2 cores"));
    EXPECT_THAT(text, HasSubstr("python train.py --name &lt;b&gt;"));
    EXPECT_THAT(text, Not(HasSubstr("<b>&")));
}

TEST_F(TuneHtmlTest, WithoutAProofNothingIsCalledProven) {
    std::string text = page();
    EXPECT_THAT(text, HasSubstr("<h1>not proven</h1>"));
    EXPECT_THAT(text, HasSubstr("Found, but not proven"));
    EXPECT_THAT(text, Not(HasSubstr("<svg")));
    answer_.search.best.clear();
    EXPECT_THAT(page(), HasSubstr("<h1>nothing that was tried is faster</h1>"));
}

TEST_F(TuneHtmlTest, SpeaksChinese) {
    std::string text = page(Language::chinese);
    EXPECT_THAT(text, HasSubstr("<html lang=\"zh-CN\">"));
    EXPECT_THAT(text, HasSubstr("试过的修改"));
    EXPECT_THAT(text, HasSubstr("基准"));
    EXPECT_THAT(text, Not(HasSubstr("What was tried")));
}

}  // namespace
}  // namespace saturate
