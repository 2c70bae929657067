// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace saturate {
namespace {

std::string error_of(const std::string& text) {
    try {
        Json::parse(text, "x.json");
    } catch (const UserError& error) {
        return error.what();
    }
    return "";
}

TEST(JsonTest, WritesWhatItReads) {
    std::string text = R"({"b": 1, "a": [true, null, -2, 0.5, "x\ny"], "o": {}, "l": []})";
    EXPECT_EQ(Json::parse(text, "x.json").line(), text);
}

TEST(JsonTest, IndentsForPeople) {
    EXPECT_EQ(Json::object({{"a", Json::array({1, 2})}, {"b", Json::object()}}).pretty(),
              "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}");
}

TEST(JsonTest, AbsentIsNullAndSoIsWhatJsonCannotHold) {
    EXPECT_EQ(Json(std::optional<int>()).line(), "null");
    EXPECT_EQ(Json(std::optional<int>(3)).line(), "3");
    EXPECT_EQ(Json(std::nan("")).line(), "null");
    EXPECT_EQ(Json(HUGE_VAL).line(), "null");
}

TEST(JsonTest, AnswersNothingForTheWrongKind) {
    Json json = Json::parse(R"({"n": 1.5, "s": "t"})", "x.json");
    EXPECT_EQ(json["n"].number(), 1.5);
    EXPECT_EQ(json["n"].integer(), std::nullopt);
    EXPECT_EQ(json["s"].number(), std::nullopt);
    EXPECT_TRUE(json["none"]["deeper"].is_null());
}

TEST(JsonTest, TheLastOfTwoEqualKeysCounts) {
    EXPECT_EQ(Json::parse(R"({"a": 1, "a": 2})", "x")["a"].integer(), 2);
}

TEST(JsonTest, ReplacesBrokenText) { EXPECT_EQ(Json("a\xff").line(), "\"a\xEF\xBF\xBD\""); }

TEST(JsonTest, SaysWhereTextBreaksOff) {
    EXPECT_EQ(error_of("{\n  \"a\": x}"),
              "error: x.json:2:8: JSON that breaks off at \"x}\"\n  expected: a JSON document");
    EXPECT_EQ(error_of(""),
              "error: x.json:1:1: JSON that breaks off at the end of the text\n  expected: a JSON "
              "document");
    EXPECT_EQ(error_of(std::string(100000, '[')),
              "error: x.json: values nested more than 200 levels deep\n  expected: a JSON document "
              "of fewer levels");
}

}  // namespace
}  // namespace saturate
