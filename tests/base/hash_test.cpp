// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <gtest/gtest.h>

#include <string>

namespace saturate {
namespace {

// The vectors of the authors' own test program.
TEST(HashTest, GivesTheKnownValues) {
    static_assert(fnv1a("") == 0xcbf29ce484222325);
    EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
    EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
    EXPECT_EQ(fnv1a(std::string_view("\0", 1)), 0xaf63bd4c8601b7dfu);
}

TEST(HashTest, SeveralTextsAreOneLongText) {
    EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar"));
}

TEST(HashTest, BytesAreTakenAsTheyAre) { EXPECT_EQ(fnv1a("\xff"), 0xaf64724c8602eb6eu); }

}  // namespace
}  // namespace saturate
