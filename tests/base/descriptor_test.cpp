// SPDX-License-Identifier: Apache-2.0
#include "base/descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>

namespace saturate {
namespace {

class DescriptorTest : public testing::Test {
  protected:
    DescriptorTest() {
        std::array<int, 2> ends{};
        EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
        reading_ = Descriptor(ends[0]);
        writing_ = Descriptor(ends[1]);
    }
    // A pipe ends when nobody can write into it any more.
    [[nodiscard]] bool has_writer() const {
        char byte = 0;
        return ::read(reading_.get(), &byte, 1) < 0;
    }
    Descriptor reading_, writing_;
};

TEST_F(DescriptorTest, ClosesAtItsEnd) {
    EXPECT_TRUE(has_writer());
    { Descriptor owner = std::move(writing_); }
    EXPECT_FALSE(writing_.is_open());
    EXPECT_FALSE(has_writer());
}

TEST_F(DescriptorTest, ClosesWhatItHadWhenItTakesAnother) {
    writing_ = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    EXPECT_TRUE(writing_.is_open());
    EXPECT_FALSE(has_writer());
}

TEST_F(DescriptorTest, LeavesAloneWhatItReleased) {
    int fd = writing_.release();
    writing_.close();
    EXPECT_TRUE(has_writer());
    EXPECT_EQ(::close(fd), 0);
}

}  // namespace
}  // namespace saturate
