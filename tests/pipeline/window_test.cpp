// SPDX-License-Identifier: Apache-2.0
#include "pipeline/window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/error.h"

namespace saturate {
namespace {

using testing::ElementsAre;

std::shared_ptr<const DataTable> table_of(const std::string& text) {
    return std::make_shared<DataTable>(parse_table(text, "t.csv"));
}

// Two columns: the row's number, and ten times it.
std::shared_ptr<const DataTable> counting(int rows) {
    std::string text = "a,b\n";
    for (int i = 0; i < rows; ++i) text += std::to_string(i) + "," + std::to_string(10 * i) + "\n";
    return table_of(text);
}

std::vector<float> window_of(const WindowSource& source, std::int64_t index, float* target) {
    std::vector<float> out(source.fields()[0].bytes() / sizeof(float));
    std::byte* places[] = {reinterpret_cast<std::byte*>(out.data()),
                           reinterpret_cast<std::byte*>(target)};
    SampleCost cost;
    auto scratch = source.make_scratch();
    source.write({.index = index}, *scratch, places, cost);
    return out;
}

TEST(WindowTest, HoldsItsRowsAndTheTargetAfterThem) {
    WindowParts parts = cut_windows(counting(20), {.length = 3,
                                                   .stride = 2,
                                                   .horizon = 2,
                                                   .target = "b",
                                                   .validation_percent = 0,
                                                   .normalise = false});
    ASSERT_EQ(parts.training->size(), 8);  // starts 0, 2 .. 14; the last target is row 18
    EXPECT_EQ(parts.validation, nullptr);
    float target = 0;
    EXPECT_THAT(window_of(*parts.training, 1, &target), ElementsAre(2, 20, 3, 30, 4, 40));
    EXPECT_EQ(target, 60);
    EXPECT_EQ(parts.training->name_of(1), "t.csv: rows 2 to 4");
    EXPECT_EQ(parts.training->fields()[0].shape, (std::vector<std::int64_t>{3, 2}));
}

TEST(WindowTest, NoRowIsInBothParts) {
    for (std::int64_t horizon : {1, 5}) {
        WindowParts parts = cut_windows(
            counting(100),
            {.length = 10, .horizon = horizon, .validation_percent = 30, .normalise = false});
        float target = 0, last_target = 0;
        std::vector<float> last =
            window_of(*parts.training, parts.training->size() - 1, &last_target);
        std::vector<float> first = window_of(*parts.validation, 0, &target);
        EXPECT_LT(last_target / 10, 70);
        EXPECT_EQ(last_target / 10, 69) << "no training row is wasted";
        EXPECT_EQ(first[0], 70);
        float end_target = 0;
        (void)window_of(*parts.validation, parts.validation->size() - 1, &end_target);
        EXPECT_EQ(end_target / 10, 99);
    }
}

TEST(WindowTest, NormalisationKnowsTheTrainingPartOnly) {
    // The validation part is wild; the training part is 0..79.
    std::string text = "a\n";
    for (int i = 0; i < 80; ++i) text += std::to_string(i) + "\n";
    for (int i = 0; i < 20; ++i) text += "1000000\n";
    WindowParts parts = cut_windows(table_of(text), {.length = 4, .validation_percent = 20});
    EXPECT_FLOAT_EQ(static_cast<float>(parts.training->target_mean()), 39.5f);
    // The deviation of 0..n-1 is sqrt((n * n - 1) / 12).
    EXPECT_FLOAT_EQ(static_cast<float>(parts.training->target_deviation()),
                    static_cast<float>(std::sqrt((80.0 * 80 - 1) / 12)));
    EXPECT_EQ(parts.validation->target_mean(), parts.training->target_mean());
    float target = 0;
    std::vector<float> window = window_of(*parts.training, 0, &target);
    EXPECT_FLOAT_EQ(window[0], -39.5f / static_cast<float>(parts.training->target_deviation()));
    EXPECT_FLOAT_EQ(target, -35.5f / static_cast<float>(parts.training->target_deviation()));
}

TEST(WindowTest, AColumnThatNeverChangesBecomesZero) {
    WindowParts parts =
        cut_windows(table_of("a\n5\n5\n5\n5\n5\n"), {.length = 2, .validation_percent = 0});
    float target = 1;
    EXPECT_THAT(window_of(*parts.training, 0, &target), ElementsAre(0, 0));
    EXPECT_EQ(target, 0);
}

TEST(WindowTest, HorizonZeroHasNoTargetAndAChannelIsADimension) {
    WindowParts parts = cut_windows(counting(10), {.length = 4, .horizon = 0, .channel = true});
    EXPECT_EQ(parts.training->fields().size(), 1u);
    EXPECT_EQ(parts.training->fields()[0].shape, (std::vector<std::int64_t>{1, 4, 2}));
}

TEST(WindowTest, TooFewRowsAreSaid) {
    try {
        (void)cut_windows(counting(10), {.length = 8});
        FAIL() << "8 training rows hold no window of 8 and its target";
    } catch (const UserError& error) {
        EXPECT_STREQ(error.what(),
                     "error: t.csv: 10 rows, 8 of them for training\n"
                     "  expected: at least 9: a window of 8 and a horizon of 1\n"
                     "  fix:      a shorter window, or more rows");
    }
}

}  // namespace
}  // namespace saturate
