// SPDX-License-Identifier: Apache-2.0
// What a configuration says beside what the record of a run shows; memory and steps over its
// length.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "diagnosis/diagnosis.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr const char* kSite = R"({"file":"train.py","line":5,"function":"main"})";

// A process that did none of what it could; `more` replaces members.
RunRecord plain_run(std::string_view flags = "", std::string_view more = "") {
    RunRecord record;
    record.python =
        Json::parse(fmt::format(R"({{"device":"cuda:0","steps":200,"world_size":1,"autocast":[],
            "scaler_steps":0,"flags":{{"tf32_matmul":false,"cudnn_benchmark":false,"cores":8{}}},
            "models":[{{"types":["torch.float32"],"compiled":false}}],"compile":null,
            "optimizers":[{{"type":"AdamW","fused":null}}],
            "steps_by_loader":[{{"loader":0,"steps":200}}],
            "loaders":[{{"id":0,"site":{},"num_workers":2,"batch_size":32,"pin_memory":true}}]{}}})",
                                flags, kSite, more),
                    "python.json");
    return record;
}

std::vector<std::string> told(const RunRecord& record, const std::string& config) {
    std::vector<Finding> findings;
    settings_in_force(record, Document::parse(config, "job.yaml"), findings);
    std::vector<std::string> out;
    for (const Finding& finding : findings) out.push_back(finding.where);
    return out;
}

TEST(FindingsForceTest, NamesThePlaceOfWhatIsNotInForce) {
    std::string config =
        "batch_size: 128\nnum_workers: 8\namp: bf16\ncompile: true\ntf32: true\n"
        "cudnn_benchmark: true\nfused_optimizer: true\n";
    EXPECT_THAT(
        told(plain_run(), config),
        UnorderedElementsAre("job.yaml:1:13", "job.yaml:2:14", "job.yaml:3:6", "job.yaml:4:10",
                             "job.yaml:5:7", "job.yaml:6:18", "job.yaml:7:18"));
    std::vector<Finding> findings;
    settings_in_force(plain_run(), Document::parse("num_workers: 8\n", "job.yaml"), findings);
    EXPECT_EQ(findings[0].evidence,
              "job.yaml:1:14 says num_workers: 8, but the loader at train.py:5 (main) has 2");
    EXPECT_EQ(findings[0].confidence, Confidence::high);
}

TEST(FindingsForceTest, AFileWithTooManyWorkersIsNotPassedOnAsItIs) {
    std::vector<Finding> findings;
    settings_in_force(plain_run(), Document::parse("num_workers: 64\n", "job.yaml"), findings);
    ASSERT_EQ(findings.size(), 1u);  // on 8 cores
    EXPECT_THAT(findings[0].fix, HasSubstr("pass it on: DataLoader(num_workers="));
    EXPECT_EQ(findings[0].fix.find("64"), std::string::npos) << findings[0].fix;
    // What the loader has is what the cores serve: then it is the file that is wrong.
    RunRecord served = plain_run();
    std::string text = findings[0].fix;
    std::string number = text.substr(text.find('=') + 1, text.find(')') - text.find('=') - 1);
    served.python =
        Json::parse(fmt::format(R"({{"device":"cuda:0","steps":200,"flags":{{"cores":8}},
            "steps_by_loader":[{{"loader":0,"steps":200}}],
            "loaders":[{{"id":0,"site":{},"num_workers":{}}}]}})",
                                kSite, number),
                    "python.json");
    findings.clear();
    settings_in_force(served, Document::parse("num_workers: 64\n", "job.yaml"), findings);
    ASSERT_EQ(findings.size(), 1u);
    EXPECT_EQ(findings[0].fix, fmt::format("num_workers: {}", number));
}

TEST(FindingsForceTest, SaysNothingOfWhatIsInForce) {
    RunRecord record = plain_run();
    record.python = Json::parse(fmt::format(R"({{"device":"cuda:0","steps":200,"world_size":4,
            "autocast":[{{"enabled":true,"count":200}}],"compile":{{"graphs":3}},
            "flags":{{"tf32_matmul":true,"cudnn_benchmark":true}},
            "optimizers":[{{"fused":true}}],"steps_by_loader":[{{"loader":0,"steps":200}}],
            "loaders":[{{"id":0,"site":{},"num_workers":8,"batch_size":32}}]}})",
                                            kSite),
                                "python.json");
    EXPECT_THAT(told(record,
                     "batch_size: 128\nnum_workers: 8\namp: bf16\ncompile: true\ntf32: true\n"
                     "cudnn_benchmark: true\nfused_optimizer: true\n"),
                testing::IsEmpty());  // 128 is 32 for each of 4 ranks
}

TEST(FindingsForceTest, PersistentWorkersOfALoaderThatIsMadeAnew) {
    RunRecord record = plain_run();
    record.python = Json::parse(
        fmt::format(R"({{"device":"cpu","steps":200,"steps_by_loader":[{{"loader":0,"steps":100}}],
            "loaders":[{{"id":0,"site":{0},"num_workers":2}},{{"id":1,"site":{0},"num_workers":2}}]}})",
                    kSite),
        "python.json");
    EXPECT_THAT(told(record, "persistent_workers: true\n"), UnorderedElementsAre("job.yaml:1:21"));
}

TEST(FindingsForceTest, WhatIsInForceIsNotAdvisedAgain) {
    std::vector<Finding> findings = {{.id = "F03", .settings = {{"pin_memory", "true"}}},
                                     {.id = "F10", .settings = {{"compile", "true"}}}};
    drop_what_is_in_force(plain_run(), findings);
    EXPECT_TRUE(findings[0].settings.empty());
    EXPECT_THAT(findings[0].fix, HasSubstr("pin_memory is already in effect"));
    EXPECT_EQ(findings[1].settings.size(), 1u);
}

TEST(FindingsForceTest, MoreWorkersNeverStandBesideTooMany) {
    std::vector<Finding> findings = {
        {.id = "F01", .fix = "num_workers=16", .settings = {{"num_workers", "16"}}},
        {.id = "F30", .fix = "num_workers=3", .settings = {{"num_workers", "3"}}}};
    drop_what_is_in_force(plain_run(), findings);
    EXPECT_TRUE(findings[0].settings.empty());
    EXPECT_THAT(findings[0].fix, HasSubstr("not more workers"));
    EXPECT_EQ(findings[1].fix, "num_workers=3");
}

const Finding* find(const std::vector<Finding>& findings, std::string_view id) {
    auto at = std::ranges::find(findings, id, &Finding::id);
    return at == findings.end() ? nullptr : &*at;
}

// One sample a second, its memory in MB by the second.
RunRecord with_memory(int seconds, double (*megabytes)(int)) {
    RunRecord record;
    for (int i = 0; i < seconds; ++i) {
        HostSample sample;
        sample.time_ns = i * std::int64_t{1'000'000'000};
        sample.memory_available_bytes = 6'000'000'000;
        sample.tree.emplace();
        sample.tree->memory_bytes = static_cast<std::uint64_t>(megabytes(i) * 1e6);
        sample.tree->processes = 1;
        record.hosts.push_back(sample);
        record.steps.push_back(
            {.step = i, .start_ns = i * std::int64_t{1'000'000'000}, .duration_ns = 900'000'000});
    }
    return record;
}

TEST(FindingsTrendTest, F34MemoryThatRisesInAStraightLine) {
    std::vector<Finding> findings;
    trend_findings(with_memory(120, [](int i) { return 1000.0 + 10 * i; }), findings);
    const Finding* grows = find(findings, "F34");
    ASSERT_NE(grows, nullptr);
    // 10 MB a second, 6 GB left.
    EXPECT_THAT(grows->evidence, HasSubstr("a minute"));
    EXPECT_THAT(grows->evidence, HasSubstr("runs out in 10 min"));
    for (auto shape : {+[](int i) { return i < 30 ? 1000.0 + 40 * i : 2200.0; },  // fills a cache
                       +[](int i) { return i < 90 ? 1000.0 : 2000.0; },           // one more block
                       +[](int i) { return 1000.0 + 300 * (i / 10 % 2); },        // up and down
                       +[](int i) { return 20000.0 + 0.5 * i; }}) {               // hardly
        std::vector<Finding> none;
        trend_findings(with_memory(120, shape), none);
        EXPECT_EQ(find(none, "F34"), nullptr) << none[0].evidence;
    }
}

// Python imports PyTorch from a slow disk, and the data is read: 17 s before 4 s of training.
TEST(FindingsTrendTest, F34MemoryThatGrowsBeforeTheFirstStepIsNoTrend) {
    RunRecord record = with_memory(21, [](int i) { return i < 17 ? 500.0 + 80 * i : 1870.0; });
    std::erase_if(record.steps, [](const StepRecord& step) { return step.step < 17; });
    std::vector<Finding> findings;
    trend_findings(record, findings);
    EXPECT_EQ(find(findings, "F34"), nullptr);
}

TEST(FindingsTrendTest, F34NamesTheLossesThatAreKept) {
    RunRecord record = with_memory(120, [](int i) { return 1000.0 + 10 * i; });
    record.python = Json::parse(R"({"kept_losses":{"with_graph":110,"of":120}})", "p");
    std::vector<Finding> findings;
    trend_findings(record, findings);
    ASSERT_NE(find(findings, "F34"), nullptr);
    EXPECT_THAT(find(findings, "F34")->evidence, HasSubstr("after 120 steps, 110 losses are kept"));
    EXPECT_THAT(find(findings, "F34")->fix, HasSubstr("loss.detach()"));
    // A script that keeps the last few only.
    record.python = Json::parse(R"({"kept_losses":{"with_graph":5,"of":120}})", "p");
    findings.clear();
    trend_findings(record, findings);
    EXPECT_EQ(find(findings, "F34")->evidence.find("losses"), std::string::npos);
}

TEST(FindingsTrendTest, F34LossesThatAreKeptInAShortRun) {
    RunRecord record = with_memory(4, [](int i) { return 1000.0 + 10 * i; });
    record.python = Json::parse(R"({"kept_losses":{"with_graph":251,"of":256}})", "p");
    std::vector<Finding> findings;
    trend_findings(record, findings);
    ASSERT_NE(find(findings, "F34"), nullptr);
    EXPECT_THAT(find(findings, "F34")->evidence, HasSubstr("after 256 steps, 251 losses are kept"));
    // A few steps may well belong to one long accumulation.
    record.python = Json::parse(R"({"kept_losses":{"with_graph":31,"of":32}})", "p");
    findings.clear();
    trend_findings(record, findings);
    EXPECT_EQ(find(findings, "F34"), nullptr);
}

TEST(FindingsTrendTest, TheVerdictNamesMemoryThatGrows) {
    RunRecord record = with_memory(120, [](int i) { return 1000.0 + 10 * i; });
    EXPECT_THAT(diagnose_run(record, "r").verdict, HasSubstr("memory on the host grows from"));
}

RunRecord with_steps(double (*ms)(int), int count = 200) {
    RunRecord record;
    std::int64_t at = 0;
    for (int i = 0; i < count; ++i) {
        auto length = static_cast<std::int64_t>(ms(i) * 1e6);
        record.steps.push_back({.step = i, .start_ns = at, .duration_ns = length});
        at += length;
    }
    return record;
}

TEST(FindingsTrendTest, F35StepsThatGetSlower) {
    std::vector<Finding> findings;
    trend_findings(with_steps([](int i) { return 100.0 + 0.5 * i + 20 * (i % 3); }), findings);
    const Finding* slower = find(findings, "F35");
    ASSERT_NE(slower, nullptr);
    EXPECT_GT(slower->gain.likely, 1.1);
    // Another job that slows two of three steps down for a while hides it from the medians only.
    findings.clear();
    trend_findings(with_steps([](int i) {
                       return 100.0 + 0.5 * i + (i >= 136 && i < 168 && i % 3 > 0 ? 30 : 0);
                   }),
                   findings);
    EXPECT_NE(find(findings, "F35"), nullptr);
    // In a long run a few of each part that were let alone suffice.
    findings.clear();
    trend_findings(with_steps(
                       [](int i) {
                           return 100.0 + 0.1 * i +
                                  (i / 100 > 2 && i / 100 < 8 && i % 25 > 0 ? 90 : 0);
                       },
                       1000),
                   findings);
    EXPECT_NE(find(findings, "F35"), nullptr);
    for (auto shape : {+[](int i) { return 100.0 + 40 * (i % 3); },
                       +[](int i) { return i > 150 ? 160.0 : 100.0; },  // another job came
                       +[](int i) { return 300.0 - i; }}) {
        std::vector<Finding> none;
        trend_findings(with_steps(shape), none);
        EXPECT_EQ(find(none, "F35"), nullptr);
    }
}

TEST(DiagnoseFolderTest, APipeInARecordIsAnErrorAndHoldsNobodyUp) {
    TemporaryFolder folder;
    std::ofstream(folder.path() / "run.json") << R"({"schema":1,"kind":"run"})";
    ASSERT_EQ(::mkfifo((folder.path() / "steps.jsonl").c_str(), 0600), 0);
    ASSERT_EQ(::mkfifo((folder.path() / "trace.json.gz").c_str(), 0600), 0);
    EXPECT_THROW((void)diagnose_run_folder(folder.path()), UserError);
    std::filesystem::remove(folder.path() / "steps.jsonl");
    EXPECT_EQ(diagnose_run_folder(folder.path()).inputs.size(), 1u);  // its trace is not read
}

}  // namespace
}  // namespace saturate
