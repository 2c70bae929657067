// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace saturate {
namespace {

// The check values of RFC 3720, appendix B.4, and of the CRC catalogue ("123456789").
TEST(Crc32cTest, GivesThePublishedValues) {
    EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
    EXPECT_EQ(crc32c(std::string(32, '\0').data(), 32), 0x8a9136aau);
    EXPECT_EQ(crc32c(std::string(32, '\xff').data(), 32), 0x62a8ab43u);
    EXPECT_EQ(crc32c(nullptr, 0), 0u);
}

TEST(Crc32cTest, GoesOnWhereItStopped) {
    std::string text = "a text of some length that is cut in two";
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        std::uint32_t first = crc32c(text.data(), cut);
        EXPECT_EQ(crc32c(text.data() + cut, text.size() - cut, first),
                  crc32c(text.data(), text.size()));
    }
}

}  // namespace
}  // namespace saturate
