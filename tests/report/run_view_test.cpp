// SPDX-License-Identifier: Apache-2.0
#include "report/run_view.h"

#include <gtest/gtest.h>

#include <cmath>

namespace saturate {
namespace {

TEST(CurveTest, KeepsMeanLeastAndMostWhileItsRangeGrows) {
    Curve curve(1);
    for (int i = 0; i < 100'000; ++i) curve.add(i, i % 2 == 0 ? 10 : 20);
    EXPECT_LE(curve.buckets().size(), Curve::kMost);
    std::int64_t n = 0;
    double sum = 0;
    for (const Curve::Bucket& bucket : curve.buckets()) {
        n += bucket.n;
        sum += bucket.sum;
        EXPECT_EQ(bucket.least, 10);
        EXPECT_EQ(bucket.most, 20);
    }
    EXPECT_EQ(n, 100'000);
    EXPECT_EQ(sum, 1'500'000);
}

TEST(CurveTest, IgnoresWhatIsNoNumberOrBeforeTheStart) {
    Curve curve(1);
    curve.add(-1, 5);
    curve.add(2, NAN);
    curve.add(1, 5);
    EXPECT_EQ(curve.buckets().size(), 2u);
    EXPECT_EQ(curve.buckets()[1].n, 1);
}

}  // namespace
}  // namespace saturate
