// SPDX-License-Identifier: Apache-2.0
// `diagnose --before A --after B`: what was predicted for the fixes that were made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/diagnosis_text.h"

namespace saturate {
namespace {

TEST(ComparisonTextTest, WhereAllIsGoneThePredictionIsThatOfAllFixes) {
    Diagnosis before, after;
    before.window_ms = 400;
    after.window_ms = 100;
    before.findings = {{.id = "F06", .share_percent = 20, .gain = {1.2, 1.5, 1.6}},
                       {.id = "F11", .share_percent = 30, .gain = {1.2, 1.4, 1.6}}};
    before.total = {2.0, 3.5, 4.0};
    EXPECT_THAT(comparison_text(before, after),
                testing::HasSubstr("prediction for what is gone: 3.500x, measured 4.000x"));
    after.findings = {before.findings[1]};
    EXPECT_THAT(comparison_text(before, after),
                testing::HasSubstr("prediction for what is gone: 1.500x, measured 4.000x"));
}

}  // namespace
}  // namespace saturate
