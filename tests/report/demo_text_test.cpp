// SPDX-License-Identifier: Apache-2.0
#include "report/demo_text.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

// The classifier's write-up claims 1.38 times and a device that is 87 % busy or more.
std::string verdict(std::vector<std::pair<double, double>> pairs, double busy, double wait_share) {
    Proof proof{.pairs = std::move(pairs)};
    judge(proof);
    DeviceUse before, after;
    after.busy_percent.add(busy);
    return demo_verdict({.job = find_demo_job("classifier"),
                         .device = "sim:RTX 3090",
                         .proof = &proof,
                         .before = &before,
                         .after = &after,
                         .wait_share = wait_share,
                         .cores = 2});
}

TEST(DemoVerdictTest, SaysWhatIsAsClaimed) {
    EXPECT_EQ(verdict({{100, 160}, {100, 161}, {100, 162}, {101, 162}, {100, 161}}, 86.7, 0.3),
              "The claimed speed-up is reached: at least 1.59 times, 1.38 times claimed. The "
              "device is 87 % busy, as claimed.");
}

TEST(DemoVerdictTest, SaysThatTheCoresCannotLoadFastEnough) {
    EXPECT_EQ(verdict({{100, 110}, {100, 111}, {100, 112}, {101, 111}, {100, 111}}, 60, 0.42),
              "Faster, but not as much as claimed (1.38 times). The device is 60 % busy here, and "
              "87 % was claimed: steps wait 42 % of the time for their data, which 2 cores cannot "
              "load as fast as the device trains.");
}

TEST(DemoVerdictTest, DoesNotGuess) {
    EXPECT_EQ(verdict({{100, 90}, {100, 170}, {100, 112}, {100, 80}, {100, 150}}, 60, 0.01),
              "The proof shows no gain: no difference seen. The device is 60 % busy here, and 87 % "
              "was claimed: the device waits for the host, not for data.");
}

}  // namespace
}  // namespace saturate
