// SPDX-License-Identifier: Apache-2.0
#include "base/compress.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/run.h"

namespace saturate {
namespace {

std::string drain(ByteStream& stream, std::size_t piece = 7) {
    std::string out;
    std::string buffer(piece, '\0');
    while (std::size_t count = stream.read(buffer.data(), piece)) out.append(buffer, 0, count);
    return out;
}

TEST(CompressTest, GivesPlainBytesAsTheyAre) {
    auto stream = open_stream_of("plain text", 100, "");
    EXPECT_EQ(drain(*stream), "plain text");
    EXPECT_FALSE(stream->torn());
}

TEST(CompressTest, UnpacksGzipOfOneAndSeveralMembers) {
    std::string packed = gzip("first ") + gzip("second");
    auto stream = open_stream_of(packed, 100, "");
    EXPECT_EQ(drain(*stream), "first second");
    EXPECT_FALSE(stream->torn());
}

TEST(CompressTest, GivesWhatATornGzipStillHolds) {
    std::string content;
    for (int i = 0; i < 20'000; ++i) content += std::to_string(i * 7919 % 10'007);
    std::string packed = gzip(content);
    packed.resize(packed.size() / 2);
    auto stream = open_stream_of(packed, 1 << 20, "");
    std::string out = drain(*stream, 4096);
    EXPECT_TRUE(stream->torn());
    EXPECT_GT(out.size(), content.size() / 4);
    EXPECT_TRUE(content.starts_with(out));
}

TEST(CompressTest, UnpacksZstandardMadeByItsOwnTool) {
    TemporaryFolder folder;
    std::filesystem::path file = folder.file("x.txt", std::string(100'000, 'z'));
    if (run({"zstd", "-q", file.string()}).status != 0) GTEST_SKIP() << "no zstd on this machine";
    auto stream = open_stream(folder.path() / "x.txt.zst", 1 << 20, "");
    EXPECT_EQ(drain(*stream, 4096), std::string(100'000, 'z'));
    EXPECT_FALSE(stream->torn());
}

TEST(CompressTest, RefusesAGzipBombAndNamesTheOption) {
    std::string packed = gzip(std::string(1 << 20, '\0'));
    ASSERT_LT(packed.size(), 4096u);
    auto stream = open_stream_of(packed, 1 << 16, "--limit");
    try {
        drain(*stream, 4096);
        FAIL() << "no error";
    } catch (const UserError& error) {
        EXPECT_STREQ(error.what(),
                     "error: unpacks to more than 64.0 KiB\n"
                     "  expected: a file that fits the limit\n"
                     "  fix:      --limit GB raises the limit");
    }
}

TEST(CompressTest, SaysThatAFileIsMissing) {
    EXPECT_THROW((void)open_stream("/nonexistent/x", 1, ""), UserError);
}

TEST(CompressTest, UnpacksRawDeflateOfTheSaidSizeOnly) {
    std::string content(5000, 'x');
    content += "the end";
    std::string packed = gzip(content);
    packed = packed.substr(10, packed.size() - 18);  // without gzip's head and tail
    EXPECT_EQ(inflate_raw(packed, content.size()), content);
    EXPECT_EQ(inflate_raw(packed, content.size() - 1), std::nullopt);
    EXPECT_EQ(inflate_raw(packed, content.size() + 1), std::nullopt);
    EXPECT_EQ(inflate_raw(packed, std::size_t{1} << 40), std::nullopt);
    EXPECT_EQ(inflate_raw(std::string_view(packed).substr(0, packed.size() / 2), content.size()),
              std::nullopt);
    EXPECT_EQ(inflate_raw("", 0), std::nullopt);
}

}  // namespace
}  // namespace saturate
