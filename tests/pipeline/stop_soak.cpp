// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "pipeline/stops.h"

namespace saturate {
namespace {

TEST(LoaderSoakTest, StopsAtTenThousandRandomPoints) {
    EXPECT_GT(stop_at_random_points(10'000, 1), 0);
}

}  // namespace
}  // namespace saturate
