// SPDX-License-Identifier: Apache-2.0
// Runs on several ranks side by side.
#include <gtest/gtest.h>

#include "report/run_report.h"

namespace saturate {
namespace {

RunView run_of(int ranks, double rate) {
    RunView out;
    out.folder = "run";
    out.info.world_size = ranks;
    out.samples_per_second =
        RunRate{.rate = rate, .median = rate, .low = rate, .high = rate, .n = 9};
    return out;
}

std::vector<std::string> cells(const ReportInput& input, const std::string& key) {
    for (const ReportRow& row : report_rows(input)) {
        if (row.key == key) return row.cells;
    }
    return {};
}

TEST(ScalingReportTest, EfficiencyIsBesideTheFewestRanks) {
    ReportInput input;
    input.runs = {run_of(2, 90), run_of(1, 100), run_of(4, 60)};
    EXPECT_EQ(cells(input, "ranks"), (std::vector<std::string>{"2", "1", "4"}));
    EXPECT_EQ(cells(input, "scaling_efficiency_percent"),
              (std::vector<std::string>{"90 %", "100 %", "60 %"}));
    EXPECT_EQ(cells(input, "samples_per_second_all_ranks"),
              (std::vector<std::string>{"180", "100", "240"}));
}

TEST(ScalingReportTest, RunsOfOneProcessSayNothingOfRanks) {
    ReportInput input;
    input.runs = {run_of(1, 90), run_of(1, 100)};
    EXPECT_TRUE(cells(input, "ranks").empty());
    EXPECT_TRUE(cells(input, "scaling_efficiency_percent").empty());
}

}  // namespace
}  // namespace saturate
