// SPDX-License-Identifier: Apache-2.0
// Every verb that tells how fast a run was tells the same, and diagnose and report see one run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "diagnosis/diagnosis.h"
#include "report/run_report.h"
#include "report/run_shelf.h"
#include "report/run_text.h"
#include "support/ring_file.h"
#include "support/run.h"
#include "telemetry/python_job.h"
#include "telemetry/record_writer.h"
#include "telemetry/step_tail.h"
#include "tuning/rate.h"

namespace saturate {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// What a loop over a loader with so many workers looks like: batches come `workers` at a time.
std::vector<RingRecord> bursts(int workers, int rounds) {
    std::vector<RingRecord> records;
    std::int64_t at = 0;
    for (int i = 0; i < workers * rounds; ++i) {
        std::int64_t wait = i % workers == 0 ? 86 * workers * kMs : 0;
        // Evaluated now and then: training stands still meanwhile.
        if (i > 0 && i % (40 * workers) == 0) at += 2'000 * kMs;
        std::int64_t length = wait + 10 * kMs + (i * 7919 % 5) * kMs / 10;
        records.push_back({.kind = 1,
                           .samples = 32,
                           .start_ns = at,
                           .duration_ns = length,
                           .wait_ns = wait,
                           .backwards = 1,
                           .optimizer_steps = 1});
        at += length;
    }
    return records;
}

class OneAccountTest : public testing::TestWithParam<int> {};

TEST_P(OneAccountTest, EveryVerbTellsSamplesOverTime) {
    int workers = GetParam();
    std::vector<RingRecord> records = bursts(workers, 120);
    double samples = 0, seconds = 0;
    for (const RingRecord& record : records) {
        samples += record.samples;
        seconds += static_cast<double>(record.duration_ns) / 1e9;
    }
    double truth = samples / seconds;

    TemporaryFolder folder;
    std::filesystem::path rings = folder.path() / "rings", run = folder.path() / "runs/a";
    std::filesystem::create_directories(rings);
    RingFile file(4096);
    for (const RingRecord& record : records) file.add(record);
    file.save(rings / "ring.4711");
    RunSummary told;
    {
        RecordWriter writer(run, {.kind = "run", .started_ns = 0});
        PythonJob job(rings, [&](const PythonProcess&) { return &writer; });
        job.poll(true);
        job.first()->account.fill(told);
        writer.finish(told);
    }
    EXPECT_NEAR(told.samples_per_second->rate, truth, 0.02 * truth) << "run";

    RunView view = view_run(run);
    EXPECT_NEAR(view.samples_per_second->rate, truth, 0.02 * truth) << "report";
    Json report = report_json({.runs = {view}});
    EXPECT_NEAR(*report["runs"].items()[0]["measures"]["samples_per_second"].number(), truth,
                0.02 * truth)
        << "the report's page";
    for (const Json& point : report["runs"].items()[0]["rate"].items())
        EXPECT_NEAR(*point.items()[1].number(), truth, 0.25 * truth) << "a point of its curve";

    RunShelf shelf(folder.path() / "runs");
    std::shared_ptr<const Listing> listing = shelf.scan();
    ASSERT_EQ(listing->runs.size(), 1u);
    EXPECT_NEAR(*listing->runs[0].samples_per_second, truth, 0.02 * truth) << "the list of serve";
    EXPECT_NEAR(shelf.view(listing->runs[0])->samples_per_second->rate, truth, 0.02 * truth)
        << "the page of serve";

    RunAccount followed;  // as a trial is
    for (const StepRecord& step : StepTail(run).next()) followed.add(step);
    EXPECT_NEAR(rate_of(followed.account())->per_second, truth, 0.02 * truth) << "tune";
    StepSums line = followed.take_interval();
    EXPECT_NEAR(*line.samples_per_second(), truth, 0.02 * truth) << "the live line of train";

    double wait = 100 * 86.0 / (86 + 10.2);
    EXPECT_NEAR(told.stall_percent.at(0).second, wait, 1);
    EXPECT_NEAR(view.split.at(0).second, wait, 1);
    EXPECT_NEAR(100 * rate_of(followed.account())->input_wait_share, wait, 1);
    Diagnosis diagnosis = diagnose_run_folder(run);
    ASSERT_FALSE(diagnosis.findings.empty());
    EXPECT_NEAR(diagnosis.findings[0].share_percent, wait, 1);
}
INSTANTIATE_TEST_SUITE_P(Workers, OneAccountTest, testing::Values(1, 2, 4, 16));

// What was counted from a thinned list told of seven times the pauses that were there.
TEST(OneRunTest, ReportAndDiagnoseAgreeOnAMillionSteps) {
    constexpr int kSteps = 1'000'000;
    TemporaryFolder folder;
    std::filesystem::path run = folder.path() / "run";
    std::filesystem::create_directories(run);
    std::ofstream(run / "run.json") << R"({"schema":1,"kind":"train","started_ns":0})";
    {
        std::ofstream steps(run / "steps.jsonl"), events(run / "events.jsonl");
        std::string text;
        std::int64_t at = 0;
        for (int i = 0; i < kSteps; ++i) {
            fmt::format_to(std::back_inserter(text),
                           "{{\"step\":{},\"t_ns\":{},\"duration_ns\":5000000,\"samples\":16,"
                           "\"input_wait_ns\":{}}}\n",
                           i, at, i % 4 == 0 ? 2'000'000 : 0);
            at += 5 * kMs;
            if (i % 1000 == 999) {
                // 51 ms after every 5 s: 1.0 % of the time.
                events << fmt::format(
                    "{{\"event\":\"evaluation\",\"t_ns\":{},\"duration_ns\":51000000,\"text\":"
                    "\"\"}}\n",
                    at);
                at += 51 * kMs;
                steps << text;
                text.clear();
            }
        }
    }
    RunView view = view_run(run);
    Diagnosis diagnosis = diagnose_run_folder(run);
    EXPECT_EQ(to_json(view.diagnosis, 100, true).line(), to_json(diagnosis, 100, true).line());
    EXPECT_EQ(view.steps, kSteps);
    EXPECT_EQ(diagnosis.steps, kSteps);
    EXPECT_NEAR(view.samples_per_second->rate, 3200, 1);
    auto pauses = std::ranges::find(diagnosis.findings, "F23", &Finding::id);
    EXPECT_TRUE(pauses == diagnosis.findings.end()) << pauses->evidence;
    auto input = std::ranges::find(diagnosis.findings, "F01", &Finding::id);
    ASSERT_TRUE(input != diagnosis.findings.end());
    EXPECT_NEAR(input->share_percent, 10, 0.01);
}

}  // namespace
}  // namespace saturate
