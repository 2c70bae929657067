// SPDX-License-Identifier: Apache-2.0
#include "pipeline/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace saturate {
namespace {

using testing::ElementsAre;

std::vector<float> numbers(const DataTable& table) {
    return {table.data, table.data + table.rows * table.width()};
}

std::string error_of(const std::string& text) {
    try {
        (void)parse_table(text, "t.csv");
    } catch (const UserError& error) {
        return error.what();
    }
    return "";
}

TEST(TableTest, ReadsNumbersUnderTheirNames) {
    DataTable table =
        parse_table("time,temp,load\n2024-01-01,1.5,-2\n2024-01-02,+3,4e2\n", "t.csv");
    EXPECT_THAT(table.columns, ElementsAre("temp", "load"));
    EXPECT_THAT(table.ignored_columns, ElementsAre("time"));
    EXPECT_THAT(numbers(table), ElementsAre(1.5f, -2, 3, 400));
}

TEST(TableTest, TellsWhatWasFilledAndLeftOut) {
    EXPECT_THAT(parse_table("a,b\n1,2\n3,4\n", "t.csv").notes(), ElementsAre());
    EXPECT_THAT(parse_table("day,a,b,city\nmon,1,2,x\ntue,,4,y\nwed,NA,?,z\n", "t.csv").notes(),
                ElementsAre("t.csv: 3 missing cells were filled with the value of the row before",
                            "t.csv: not numbers, so left out: day, city"));
}

TEST(TableTest, ReadsWindowsLinesQuotesTabsAndAByteOrderMark) {
    EXPECT_THAT(numbers(parse_table("\xEF\xBB\xBF\"a\"\t\"b\"\r\n1\t2\r\n\r\n3\t4", "t")),
                ElementsAre(1, 2, 3, 4));
    EXPECT_THAT(parse_table("\"x, y\",b\n\"1\",2\n", "t").columns, ElementsAre("x, y", "b"));
}

TEST(TableTest, ReadsSemicolonsWithADecimalCommaAndAnEmptyLastColumn) {
    DataTable table = parse_table("Date;CO;T;\n10/03/2004;2,6;13,6;\n10/03/2004;2;-200;\n", "t");
    EXPECT_THAT(table.columns, ElementsAre("CO", "T"));
    EXPECT_THAT(numbers(table), ElementsAre(2.6f, 13.6f, 2, -200));
}

TEST(TableTest, WithoutNamesColumnsAreNumbered) {
    DataTable table = parse_table("\n1,2\n3,4\n", "t");
    EXPECT_THAT(table.columns, ElementsAre("0", "1"));
    EXPECT_EQ(table.rows, 2);
}

TEST(TableTest, GapsTakeTheValueBeforeAndAreCounted) {
    DataTable table = parse_table("a,b\n,1\n2,NA\nnan,3\n?,\n", "t");
    EXPECT_THAT(numbers(table), ElementsAre(2, 1, 2, 1, 2, 3, 2, 3));
    EXPECT_EQ(table.filled_cells, 5);
}

TEST(TableTest, MistakesHaveTheirLine) {
    EXPECT_EQ(error_of("a,b\n1,2\n3\n"),
              "error: t.csv:3: 1 cells\n  expected: 2, as in the first line");
    EXPECT_EQ(error_of("a,b\n1,2\n3,x4\n"),
              "error: t.csv:3: \"x4\" in column \"b\"\n"
              "  expected: a number, or nothing where it is missing");
    EXPECT_EQ(error_of(""), "error: t.csv: an empty table\n  expected: a header line and rows");
    EXPECT_EQ(error_of("a,b\n"),
              "error: t.csv: no column of numbers\n"
              "  expected: a header line and rows of numbers");
}

TEST(TableTest, ColumnsAreFoundByNameOrNumber) {
    DataTable table = parse_table("temp,load\n1,2\n", "t.csv");
    EXPECT_EQ(table.column("load"), 1);
    EXPECT_EQ(table.column("0"), 0);
    EXPECT_EQ(table.column(""), 1);
    try {
        (void)table.column("laod");
        FAIL() << "no such column";
    } catch (const UserError& error) {
        EXPECT_STREQ(error.what(),
                     "error: t.csv: no column \"laod\"\n  expected: temp, load\n  fix:      load");
    }
}

}  // namespace
}  // namespace saturate
