// SPDX-License-Identifier: Apache-2.0
#include "tuning/fix_rates.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

TEST(FixRatesTest, OnAQuietMachineOneRunDecides) {
    FixRates no{{100, 102}, {101}}, large{{100, 102}, {140}}, slow{{100, 102}, {80}};
    EXPECT_FALSE(no.is_open() || large.is_open() || slow.is_open());
    EXPECT_EQ(no.result(), FixResult::no_gain);
    EXPECT_EQ(large.result(), FixResult::kept);
    EXPECT_EQ(slow.result(), FixResult::slower);
}

TEST(FixRatesTest, ASmallGainIsMeasuredAgainBesideTheBest) {
    FixRates rates{{100, 102}, {107}};
    EXPECT_TRUE(rates.is_open());
    EXPECT_FALSE(rates.is_uneven());
    rates.before.push_back(106);
    EXPECT_EQ(rates.result(), FixResult::no_gain);
}

// Somebody else's work ran beside the first run, and beside that of the change.
TEST(FixRatesTest, RunsThatDifferAreRepeatedUntilTheyTell) {
    FixRates rates{{357, 1139}, {566}};
    EXPECT_TRUE(rates.is_open() && rates.is_uneven());
    EXPECT_EQ(rates.result(), FixResult::no_gain);
    rates.before.push_back(1000);
    rates.after.push_back(1500);
    EXPECT_TRUE(rates.is_open());
    rates.before.push_back(1100);
    rates.after.push_back(1450);
    EXPECT_FALSE(rates.is_open());  // enough was measured
    EXPECT_EQ(rates.result(), FixResult::kept);
}

TEST(FixRatesTest, FarBelowTheSlowestIsNoGainHoweverUnevenTheyAre) {
    FixRates rates{{400, 1100}, {300}};
    EXPECT_FALSE(rates.is_open());
    EXPECT_EQ(rates.result(), FixResult::slower);
}

}  // namespace
}  // namespace saturate
