// SPDX-License-Identifier: Apache-2.0
#include "pipeline/tar_shards.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "pipeline/image_support.h"
#include "pipeline/tar_index.h"

namespace saturate {
namespace {

std::string padded(std::string text) {
    text.resize((text.size() + 511) / 512 * 512, '\0');
    return text;
}

void put_text(std::string& block, std::size_t at, const std::string& text) {
    block.replace(at, text.size(), text);
}

std::string sealed(std::string block) {
    put_text(block, 148, "        ");
    unsigned sum = 0;
    for (char c : block) sum += static_cast<unsigned char>(c);
    put_text(block, 148, fmt::format("{:06o}", sum) + '\0');
    return block;
}

std::string member(const std::string& name, const std::string& body, char type = '0') {
    std::string block(512, '\0');
    put_text(block, 0, name);
    put_text(block, 100, "0000644");
    put_text(block, 124, fmt::format("{:011o}", body.size()));
    block[156] = type;
    put_text(block, 257, "ustar");
    return sealed(block) + padded(body);
}

const std::string kEnd(1024, '\0');

class MemoryBytes final : public TarBytes {
  public:
    explicit MemoryBytes(std::string text) : text_(std::move(text)) {}
    [[nodiscard]] std::uint64_t size() const override { return text_.size(); }
    void read(std::uint64_t offset, std::size_t count, char* out) override {
        std::memcpy(out, text_.data() + offset, count);
    }

  private:
    std::string text_;
};

std::vector<TarEntry> index_of(const std::string& text) {
    MemoryBytes bytes(text);
    return index_tar(bytes, "a.tar");
}

std::string refusal(const std::string& text) {
    try {
        (void)index_of(text);
        return "";
    } catch (const UserError& error) {
        return error.what();
    }
}

TEST(TarIndexTest, FindsFilesOfEveryDialect) {
    std::string name(150, 'n');
    std::string pax = "16 path=p/2.jpg\n";
    std::string prefixed(512, '\0');
    put_text(prefixed, 0, "4.jpg");
    put_text(prefixed, 124, "00000000003");
    prefixed[156] = '0';
    put_text(prefixed, 257, "ustar");
    put_text(prefixed, 345, "some/folder");
    std::string binary(512, '\0');  // GNU: the size in base 256
    put_text(binary, 0, "5.jpg");
    binary[124] = '\x80';
    binary[135] = '\x02';
    std::string archive = member("1.jpg", "one") + member("folder/", "", '5') +
                          member("././@LongLink", name + '\0', 'L') + member("cut off", "two") +
                          member("pax", pax, 'x') + member("plain", "three") + sealed(prefixed) +
                          padded("fou") + sealed(binary) + padded("fi") + kEnd;
    std::vector<TarEntry> entries = index_of(archive);
    std::vector<std::string> names;
    for (const TarEntry& entry : entries)
        names.push_back(entry.name + "=" + archive.substr(entry.offset, entry.size));
    EXPECT_EQ(names, (std::vector<std::string>{"1.jpg=one", name + "=two", "p/2.jpg=three",
                                               "some/folder/4.jpg=fou", "5.jpg=fi"}));
}

TEST(TarIndexTest, SaysWhereAnArchiveIsBroken) {
    std::string archive = member("1.jpg", std::string(600, 'x')) + kEnd;
    std::string tail =
        "\n  expected: a tar archive, not compressed\n  fix:      fetch or pack the shard again";
    EXPECT_EQ(refusal(archive.substr(0, 700)),
              "error: a.tar: ends in the middle of \"1.jpg\" at byte 0" + tail);
    EXPECT_EQ(refusal(archive.substr(0, 100)),
              "error: a.tar: ends in the middle of a header at byte 0" + tail);
    EXPECT_EQ(refusal("\x1F\x8B" + std::string(1000, 'z')),
              "error: a.tar: no tar header at byte 0" + tail);
    EXPECT_EQ(refusal(member("x", "nonsense", 'x') + kEnd),
              "error: a.tar: a broken pax header at byte 0" + tail);
    // Without its end mark or the padding of its last file an archive is still whole.
    EXPECT_EQ(index_of(archive.substr(0, 512 + 600)).size(), 1u);
}

TEST(TarIndexTest, EveryShorterArchiveIsRefusedOrHasFewerFiles) {
    std::string archive = member("1.jpg", "one") + member("2.jpg", "two") + kEnd;
    for (std::size_t length = 0; length < archive.size(); ++length) {
        bool refused = !refusal(archive.substr(0, length)).empty();
        std::size_t whole = length >= 1539 ? 2 : length >= 515 ? 1 : 0;
        if (!refused) {
            EXPECT_EQ(index_of(archive.substr(0, length)).size(), whole) << length;
        }
    }
}

ImageTransform grey() {
    ImageTransform transform;
    transform.width = transform.height = 8;
    transform.decode.channels = 1;
    return transform;
}

std::string flat_png(int value) {
    Picture picture{std::vector<std::uint8_t>(64, static_cast<std::uint8_t>(value)), {8, 8}, 1};
    return encode_png(picture.view());
}

struct Written {
    std::vector<float> image = std::vector<float>(64);
    std::int64_t label = -1;
};

Written write_one(const TarShards& shards, std::int64_t index) {
    Written written;
    auto scratch = shards.make_scratch();
    SampleCost cost;
    std::byte* places[] = {reinterpret_cast<std::byte*>(written.image.data()),
                           reinterpret_cast<std::byte*>(&written.label)};
    shards.write({1, 0, index}, *scratch, places, cost);
    return written;
}

TEST(TarShardsTest, ASampleIsTheFilesOfOneStem) {
    TemporaryFolder folder;
    folder.file("b.tar", member("000002.cls", "7\n") + member("000002.png", flat_png(30)) + kEnd);
    folder.file("a.tar", member("000000.png", flat_png(10)) + member("000000.cls", "3") +
                             member("000000.json", "{}") + member("000001.png", flat_png(20)) +
                             member("000001.cls", "4") + kEnd);
    TarShards shards({.shards = shards_in(folder.path()), .transform = grey()});
    ASSERT_EQ(shards.size(), 3);
    ASSERT_EQ(shards.fields().size(), 2u);
    int values[] = {10, 20, 30}, labels[] = {3, 4, 7};
    for (int i = 0; i < 3; ++i) {
        Written written = write_one(shards, i);
        EXPECT_FLOAT_EQ(written.image[9], static_cast<float>(values[i]) / 255);
        EXPECT_EQ(written.label, labels[i]);
    }
    EXPECT_EQ(shards.name_of(1), (folder.path() / "a.tar").string() + ": 000001.png");
}

TEST(TarShardsTest, WhatIsWrongWithASampleIsNamed) {
    TemporaryFolder folder;
    auto path = folder.file(
        "a.tar", member("0.png", flat_png(1)) + member("0.cls", "1") + member("1.png", "broken") +
                     member("1.cls", "1") + member("2.png", flat_png(1)) + member("3.cls", "1") +
                     member("4.png", flat_png(1)) + member("4.cls", "one") + kEnd);
    TarShards shards({.shards = {path}, .transform = grey()});
    ASSERT_EQ(shards.size(), 5);
    const char* why[] = {"", "not a JPEG, PNG or WebP file", "no label",
                         "no image, or an empty one", "a label that is not a number"};
    for (int i = 1; i < 5; ++i) {
        try {
            write_one(shards, i);
            ADD_FAILURE() << i;
        } catch (const BadSample& bad) {
            EXPECT_STREQ(bad.what(), why[i]);
            EXPECT_EQ(bad.sample(), shards.name_of(i));
        }
    }
    std::filesystem::resize_file(path, 600);
    try {
        write_one(shards, 4);
        FAIL();
    } catch (const BadSample& bad) {
        EXPECT_STREQ(bad.what(), "the shard became shorter");
    }
}

TEST(TarShardsTest, ShardsWithoutImagesAreRefused) {
    TemporaryFolder folder;
    auto path = folder.file("a.tar", member("0.txt", "hello") + kEnd);
    try {
        TarShards shards({.shards = {path}, .transform = grey()});
        FAIL();
    } catch (const UserError& error) {
        EXPECT_EQ(std::string(error.what()),
                  "error: " + path.string() +
                      ": 1 shards without images\n"
                      "  expected: files that end in .jpg, .jpeg, .png or .webp");
    }
}

}  // namespace
}  // namespace saturate
