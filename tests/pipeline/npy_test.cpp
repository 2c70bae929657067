// SPDX-License-Identifier: Apache-2.0
#include "pipeline/npy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/compress.h"
#include "base/error.h"
#include "pipeline/array_source.h"
#include "pipeline/table.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::ElementsAre;

template <typename T>
std::string npy(const std::string& descr, const std::string& shape, std::vector<T> values,
                const std::string& order = "False") {
    std::string header =
        fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, order, shape);
    header.resize((header.size() + 10 + 64) / 64 * 64 - 10, ' ');
    header.back() = '\n';
    std::string out = "\x93NUMPY";
    out += '\1';
    out += '\0';
    out += static_cast<char>(header.size() & 255);
    out += static_cast<char>(header.size() >> 8);
    out += header;
    out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    return out;
}

NpyArray parse(const std::string& bytes) {
    return parse_npy(std::as_bytes(std::span(bytes)), "a.npy", nullptr);
}

std::string error_of(const std::string& bytes) {
    try {
        (void)parse(bytes);
    } catch (const UserError& error) {
        return error.what();
    }
    return "";
}

void put(std::string& out, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 255);
}

// A zip archive as numpy.savez makes it: one member, stored or deflated.
std::string zip(const std::string& name, const std::string& content, bool packed) {
    std::string body = content;
    if (packed) {
        body = gzip(content);
        body = body.substr(10, body.size() - 18);
    }
    auto facts = [&](std::string& out) {
        put(out, packed ? 8 : 0, 2);
        put(out, 0, 4);  // time
        put(out, 0, 4);  // checksum
        put(out, body.size(), 4);
        put(out, content.size(), 4);
        put(out, name.size(), 2);
        put(out, 0, 2);
    };
    std::string out = "PK\x03\x04";
    put(out, 20, 2);
    put(out, 0, 2);
    facts(out);
    out += name + body;
    std::size_t directory = out.size();
    out += "PK\x01\x02";
    put(out, 20, 2);
    put(out, 20, 2);
    put(out, 0, 2);
    facts(out);
    put(out, 0, 2);
    put(out, 0, 2);
    put(out, 0, 2);
    put(out, 0, 4);
    put(out, 0, 4);
    out += name;
    std::size_t end = out.size();
    out += "PK\x05\x06";
    put(out, 0, 4);
    put(out, 1, 2);
    put(out, 1, 2);
    put(out, end - directory, 4);
    put(out, directory, 4);
    put(out, 0, 2);
    return out;
}

TEST(NpyTest, ReadsShapeTypeAndNumbers) {
    NpyArray array = parse(npy<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(array.name, "a");
    EXPECT_EQ(array.type, (NumberType{'f', 4}));
    EXPECT_THAT(array.shape, ElementsAre(2, 3));
    EXPECT_EQ(array.data.size(), 24u);
}

TEST(NpyTest, SaysWhatIsWrong) {
    EXPECT_EQ(error_of("hello, this is no array"),
              "error: a.npy: not an npy array\n"
              "  expected: an array as numpy.save writes it");
    EXPECT_EQ(error_of(npy<float>(">f4", "(1,)", {1})),
              "error: a.npy: dtype \"'>f4'\"\n"
              "  expected: an array as numpy.save writes it\n"
              "  fix:      numbers of this machine's byte order: array.astype('<f4')");
    EXPECT_EQ(error_of(npy<float>("<f4", "(2, 2)", {1, 2, 3, 4}, "True")),
              "error: a.npy: Fortran order\n"
              "  expected: an array as numpy.save writes it\n"
              "  fix:      numpy.ascontiguousarray(array)");
    EXPECT_EQ(error_of(npy<float>("<f4", "(3, 1000000000000, 1000000000000)", {1})),
              "error: a.npy: shape \"(3, 1000000000000, 1000000000000\") needs more than the 4 "
              "bytes in the file\n"
              "  expected: an array as numpy.save writes it");
}

TEST(NpyTest, NoPrefixOfAnArrayCrashes) {
    std::string whole = npy<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6});
    for (std::size_t size = 0; size < whole.size(); ++size) {
        std::string part = whole.substr(0, size);
        EXPECT_NE(error_of(part), "") << size << " bytes";
    }
}

TEST(NpyTest, ReadsArchivesStoredAndPacked) {
    std::string array = npy<std::int64_t>("<i8", "(4,)", {7, 8, 9, 10});
    for (bool packed : {false, true}) {
        std::string archive = zip("label.npy", array, packed);
        std::vector<NpyArray> arrays =
            parse_npz(std::as_bytes(std::span(archive)), "a.npz", nullptr);
        ASSERT_EQ(arrays.size(), 1u);
        EXPECT_EQ(arrays[0].name, "label");
        std::int64_t last = 0;
        std::memcpy(&last, arrays[0].data.data() + 24, 8);
        EXPECT_EQ(last, 10);
        for (std::size_t size = 0; size < archive.size(); ++size) {
            std::string part = archive.substr(0, size);
            EXPECT_THROW((void)parse_npz(std::as_bytes(std::span(part)), "a.npz", nullptr),
                         UserError)
                << size << " bytes";
        }
    }
}

TEST(ArraySourceTest, EachArrayIsAField) {
    TemporaryFolder folder;
    folder.file("x.npy", npy<double>("<f8", "(2, 2)", {1.5, 2.5, 3.5, 4.5}));
    folder.file("y.npy", npy<std::int16_t>("<i2", "(2,)", {-3, 9}));
    ArraySource source(open_arrays(folder.path()), folder.path().string());
    ASSERT_EQ(source.size(), 2);
    EXPECT_EQ(source.fields()[0],
              (FieldSpec{.name = "x", .element = Element::float32, .shape = {2}}));
    EXPECT_EQ(source.fields()[1], (FieldSpec{.name = "y", .element = Element::int64}));
    float x[2];
    std::int64_t y = 0;
    std::byte* places[] = {reinterpret_cast<std::byte*>(x), reinterpret_cast<std::byte*>(&y)};
    SampleCost cost;
    auto scratch = source.make_scratch();
    source.write({.index = 1}, *scratch, places, cost);
    EXPECT_EQ(x[0], 3.5f);
    EXPECT_EQ(x[1], 4.5f);
    EXPECT_EQ(y, 9);
}

TEST(ArraySourceTest, ConvertsEveryType) {
    auto as_float = [](NumberType type, auto value) {
        float out = 0;
        convert(type, reinterpret_cast<const std::byte*>(&value), 1,
                reinterpret_cast<std::byte*>(&out));
        return out;
    };
    auto as_whole = [](NumberType type, auto value) {
        std::int64_t out = 0;
        convert(type, reinterpret_cast<const std::byte*>(&value), 1,
                reinterpret_cast<std::byte*>(&out));
        return out;
    };
    EXPECT_EQ(as_float({'f', 4}, 1.25f), 1.25f);
    EXPECT_EQ(as_float({'f', 8}, -2.5), -2.5f);
    // Half precision: 1.5, the largest, the smallest, minus infinity.
    EXPECT_EQ(as_float({'f', 2}, std::uint16_t{0x3E00}), 1.5f);
    EXPECT_EQ(as_float({'f', 2}, std::uint16_t{0x7BFF}), 65504.0f);
    EXPECT_EQ(as_float({'f', 2}, std::uint16_t{0x0001}), 0x1.0p-24f);
    EXPECT_EQ(as_float({'f', 2}, std::uint16_t{0xFC00}), -INFINITY);
    EXPECT_EQ(as_whole({'i', 1}, std::int8_t{-5}), -5);
    EXPECT_EQ(as_whole({'i', 2}, std::int16_t{-500}), -500);
    EXPECT_EQ(as_whole({'u', 2}, std::uint16_t{65535}), 65535);
    EXPECT_EQ(as_whole({'i', 4}, std::int32_t{-70000}), -70000);
    EXPECT_EQ(as_whole({'u', 4}, std::uint32_t{4000000000u}), 4000000000);
    EXPECT_EQ(as_whole({'i', 8}, std::int64_t{-1} << 40), std::int64_t{-1} << 40);
    EXPECT_EQ(as_whole({'u', 1}, std::uint8_t{200}), 200);  // one byte is written
}

TEST(ArraySourceTest, ArraysOfDifferentLengthAreRefused) {
    TemporaryFolder folder;
    folder.file("x.npy", npy<float>("<f4", "(2,)", {1, 2}));
    folder.file("y.npy", npy<float>("<f4", "(3,)", {1, 2, 3}));
    try {
        ArraySource source(open_arrays(folder.path()), "data");
        FAIL() << "2 and 3 samples";
    } catch (const UserError& error) {
        EXPECT_STREQ(error.what(),
                     "error: data: x has 2 samples, y has 3\n"
                     "  expected: arrays whose first dimension is the sample");
    }
}

TEST(ArraySourceTest, AnEmptyArrayBesideAFullOneIsRefused) {
    TemporaryFolder folder;
    folder.file("x.npy", npy<float>("<f4", "(0,)", {}));
    folder.file("y.npy", npy<float>("<f4", "(3,)", {1, 2, 3}));
    EXPECT_THROW(ArraySource(open_arrays(folder.path()), "data"), UserError);
}

TEST(TableTest, AnNpyTableIsMappedNotCopied) {
    TemporaryFolder folder;
    auto path = folder.file("t.npy", npy<float>("<f4", "(3, 2)", {1, 2, 3, 4, 5, 6}));
    std::shared_ptr<const DataTable> table = read_table(path);
    EXPECT_EQ(table->rows, 3);
    EXPECT_THAT(table->columns, ElementsAre("0", "1"));
    EXPECT_EQ(table->row(2)[1], 6);
}

}  // namespace
}  // namespace saturate
