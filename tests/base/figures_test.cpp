// SPDX-License-Identifier: Apache-2.0
#include "base/figures.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

TEST(FiguresTest, RatesAreGroupedByThousands) {
    EXPECT_EQ(rate_text(0), "0.0");
    EXPECT_EQ(rate_text(61.38), "61.4");
    EXPECT_EQ(rate_text(412.4), "412");
    EXPECT_EQ(rate_text(1234), "1,234");
    EXPECT_EQ(rate_text(61380), "61,380");
    EXPECT_EQ(rate_text(2064935.2), "2,064,935");
}

}  // namespace
}  // namespace saturate
