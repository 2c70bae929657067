// SPDX-License-Identifier: Apache-2.0
#include "report/run_view.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/file.h"
#include "report/run_report.h"
#include "support/run.h"
#include "support/serving.h"

namespace saturate {
namespace {

TEST(CurveTest, KeepsMeanLeastAndMostWhileItsRangeGrows) {
    Curve curve(1);
    for (int i = 0; i < 100'000; ++i) curve.add(i, i % 2 == 0 ? 10 : 20);
    EXPECT_LE(curve.buckets().size(), Curve::kMost);
    std::int64_t n = 0;
    double sum = 0;
    for (const Curve::Bucket& bucket : curve.buckets()) {
        n += bucket.n;
        sum += bucket.sum;
        EXPECT_EQ(bucket.least, 10);
        EXPECT_EQ(bucket.most, 20);
    }
    EXPECT_EQ(n, 100'000);
    EXPECT_EQ(sum, 1'500'000);
}

TEST(CurveTest, IgnoresWhatIsNoNumberOrBeforeTheStart) {
    Curve curve(1);
    curve.add(-1, 5);
    curve.add(2, NAN);
    curve.add(1, 5);
    EXPECT_EQ(curve.buckets().size(), 2u);
    EXPECT_EQ(curve.buckets()[1].n, 1);
}

// Bytes come as a writer leaves them, in the middle of a line more often than not.
TEST(RunViewerTest, ARunReadWhileItGrowsEqualsItReadAtItsEnd) {
    TemporaryFolder folder;
    write_run_record(folder.path() / "whole", 500);
    std::filesystem::path growing = folder.path() / "growing/whole";
    std::filesystem::create_directories(growing);
    std::filesystem::copy_file(folder.path() / "whole/run.json", growing / "run.json");
    RunViewer viewer(growing);
    EXPECT_EQ(viewer.view(false).steps, 0);
    std::int64_t last = 0;
    for (int part = 1; part <= 7; ++part) {
        for (const char* name : {"steps.jsonl", "samples.jsonl", "events.jsonl"}) {
            std::string text = read_file(folder.path() / "whole" / name, 1 << 20, "a record");
            std::ofstream(growing / name, std::ios::binary)
                << text.substr(0, text.size() * static_cast<std::size_t>(part) / 7);
        }
        RunView view = viewer.view(part == 7);
        EXPECT_GT(view.steps, last);
        last = view.steps;
        EXPECT_FALSE(viewer.has_shrunk());
        ReportInput grown{.runs = {view}}, whole{.runs = {view_run(growing)}};
        for (ReportInput* input : {&grown, &whole}) {
            // A half line is only told of at the end.
            input->runs[0].notes.clear();
            input->runs[0].diagnosis.health.clear();
        }
        EXPECT_EQ(report_json(grown).line(), report_json(whole).line()) << part;
    }
    EXPECT_EQ(last, 500);
    std::ofstream(growing / "steps.jsonl", std::ios::binary) << "";
    EXPECT_TRUE(viewer.has_shrunk());
}

}  // namespace
}  // namespace saturate
