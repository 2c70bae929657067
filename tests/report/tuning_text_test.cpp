// SPDX-License-Identifier: Apache-2.0
#include "report/tuning_text.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

TEST(ProofTextTest, FewerThanFivePairsSayOnlyThatItTakesMore) {
    Proof proof{.unit = "samples/s", .pairs = {{100, 200}, {50, 190}}, .longer = "12m"};
    judge(proof);
    EXPECT_EQ(proof_text(proof),
              "Before  75.0 (n=2, 50.0..100) samples/s\n"
              "After   195 (n=2, 190..200) samples/s\n"
              "Verdict not proven: 2 pairs of runs, 5 needed, run longer: --budget 12m\n");
    EXPECT_EQ(proof_text({.longer = "9m"}),
              "Verdict not proven: no pair of runs finished, run longer: --budget 9m\n");
}

}  // namespace
}  // namespace saturate
