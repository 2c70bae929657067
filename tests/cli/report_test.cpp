// SPDX-License-Identifier: Apache-2.0
// report as a user runs it, on run records written here.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "base/json.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::Not;

// A run of 200 steps of 10 ms, of which `wait_ms` are spent waiting for data.
void write_run(const std::filesystem::path& folder, int samples, int wait_ms,
               const std::string& settings) {
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "run.json") << Json::object({{"schema", 1},
                                                        {"kind", "train"},
                                                        {"device", "cuda:0"},
                                                        {"started_ns", 1000},
                                                        {"settings_text", settings},
                                                        {"settings_source", "job.yaml"}})
                                              .line();
    std::ofstream steps(folder / "steps.jsonl");
    for (int i = 0; i < 200; ++i) {
        steps << fmt::format(
            "{{\"step\":{},\"t_ns\":{},\"duration_ns\":10000000,\"samples\":{},\"input_wait_ns\":{}"
            ","
            "\"forward_ns\":1000000,\"device_busy_ns\":{},\"loss\":{}}}\n",
            i, i * 10'000'000L, samples, wait_ms * 1'000'000, (10 - wait_ms) * 1'000'000,
            1.0 / (1 + i));
    }
    std::ofstream samples_file(folder / "samples.jsonl");
    for (int t = 0; t < 2; ++t) {
        samples_file << fmt::format(
            "{{\"type\":\"gpu\",\"gpu\":0,\"t_ns\":{},\"took_ns\":1,\"utilization_percent\":{},"
            "\"power_watts\":300}}\n",
            t * 1'000'000'000L, 10 * (10 - wait_ms));
    }
    std::ofstream(folder / "events.jsonl")
        << "{\"event\":\"evaluation\",\"t_ns\":1000000000,\"text\":\"accuracy </script><b>\"}\n";
}

class ReportTest : public testing::Test {
  protected:
    ReportTest() {
        write_run(folder_.path() / "before", 32, 4, "batch_size: 32\nnum_workers: 0\n");
        write_run(folder_.path() / "after", 64, 0, "batch_size: 64\nnum_workers: 0\n");
    }
    Ran report(std::vector<std::string> words) {
        words.insert(words.begin(), {SATURATE_BINARY, "report"});
        return run(words, {.folder = folder_.path(), .environment = {{"LC_ALL", "C"}}});
    }
    TemporaryFolder folder_;
};

TEST_F(ReportTest, ComparesTwoRunsInMarkdown) {
    Ran ran = report({"before", "after", "--markdown"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("**faster: 2.00 times the rate (3,200 -> 6,400 samples/s)**"));
    EXPECT_THAT(ran.out,
                HasSubstr("| utilisation | 60.0 % ± 0.0 | 100.0 % ± 0.0 | +40.0 points |"));
    EXPECT_THAT(ran.out, HasSubstr("| waiting for data | 40.0 % | 0.0 % | -40.0 points |"));
    EXPECT_THAT(ran.out, HasSubstr("| batch_size | 32 | 64 |"));
    EXPECT_THAT(ran.out, Not(HasSubstr("num_workers")));
}

TEST_F(ReportTest, SaysInTheVerdictThatEqualRunsAreEqual) {
    Ran ran = report({"before", "before", "--json"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    Json json = Json::parse(ran.out, "stdout");
    EXPECT_EQ(json["schema"].integer(), 1);
    EXPECT_EQ(json["verdict"].string(),
              "no difference seen: 1.00 times, and the ranges of the runs overlap");
    EXPECT_EQ(json["runs"].items().at(0)["steps"].integer(), 200);
    EXPECT_EQ(json["runs"].items().at(0)["diagnosis"]["findings"].items().at(0)["id"].string(),
              "F01");
}

TEST_F(ReportTest, ThePageHoldsEverythingAndAsksForNothing) {
    Ran ran = report({"before", "after"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::string page = read_file(folder_.path() / "report.html", 10u << 20, "a page");
    EXPECT_THAT(page, HasSubstr("<html lang=\"en\">"));
    EXPECT_THAT(page, HasSubstr("F01"));
    EXPECT_THAT(page, Not(HasSubstr("http://127")));
    EXPECT_THAT(page, Not(HasSubstr("src=")));
    // What a job writes into its events cannot end the script.
    EXPECT_THAT(page, Not(HasSubstr("</script><b>")));
    EXPECT_LT(page.size(), 1u << 20);
}

TEST_F(ReportTest, SpeaksChinese) {
    Ran ran = report({"before", "after", "--markdown", "--lang", "zh"});
    EXPECT_THAT(ran.out, HasSubstr("更快：速率为 2.00 倍（3,200 -> 6,400 样本/秒）"));
}

TEST_F(ReportTest, FailsOnARunThatIsSoMuchSlower) {
    Ran slower = report({"after", "before", "--markdown", "--fail-on", "10"});
    EXPECT_EQ(slower.status, 1);
    EXPECT_EQ(slower.err,
              "regression: 50.0 % slower than after (6,400 -> 3,200 samples/s; fails from 10 % "
              "slower)\n");
    EXPECT_EQ(report({"after", "before", "--markdown", "--fail-on", "60"}).status, 0);
    EXPECT_EQ(report({"before", "after", "--markdown", "--fail-on", "0"}).status, 0);
    EXPECT_EQ(report({"before", "before", "--markdown", "--fail-on", "0"}).status, 0)
        << "no difference is no regression";
    Ran json = report({"after", "before", "--json", "--fail-on", "10"});
    EXPECT_EQ(json.status, 1);
    EXPECT_EQ(Json::parse(json.out, "stdout")["regression"]["fails"].boolean(), true);
    Ran one = report({"after", "--fail-on", "10"});
    EXPECT_EQ(one.status, 2);
    EXPECT_THAT(one.err, HasSubstr("--fail-on needs two runs"));
}

TEST_F(ReportTest, TellsTheProofOfTheSearchThatTheRunsBelongTo) {
    std::ofstream(folder_.path() / "proof.json")
        << R"({"verdict":"faster","ratio":2.01,"interval":[1.9,2.12]})";
    Ran ran = report({"before", "after", "--json"});
    Json json = Json::parse(ran.out, "stdout");
    EXPECT_THAT(*json["verdict"].string(),
                HasSubstr("; the proof of its search: faster, 2.01 times [1.90, 2.12]"));
    EXPECT_EQ(json["proof"]["ratio"].number(), 2.01);
}

TEST_F(ReportTest, RefusesWhatIsNoRun) {
    Ran ran = report({"nowhere"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, HasSubstr("nowhere"));
}

TEST_F(ReportTest, ACutRecordIsShownUpToTheCut) {
    std::filesystem::resize_file(folder_.path() / "after/steps.jsonl", 1000);
    Ran ran = report({"after", "--json"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    Json json = Json::parse(ran.out, "stdout");
    EXPECT_GT(json["runs"].items().at(0)["steps"].integer().value_or(0), 3);
    EXPECT_GE(json["runs"].items().at(0)["notes"].items().size(), 1u);
}

}  // namespace
}  // namespace saturate
