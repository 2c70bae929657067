// SPDX-License-Identifier: Apache-2.0
// Records with what a Python process told: the loader that waits is named with its line, the fix
// fits its data.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "diagnosis/diagnosis.h"
#include "diagnosis/python_json.h"

namespace saturate {
namespace {

using testing::HasSubstr;

constexpr double kMs = 1e6;

struct Told {
    double step_ms = 100, wait_ms = 80;
    double fetch_ms = 80, on_core_ms = 10;  // of one batch
    int workers = 0, cores = 8;
    bool in_memory = false;
    int batch_size = 0;          // not told
    std::string of_loader = "";  // further members of the loader
    std::string more = "";       // further members of python.json
};

RunRecord record_of(const Told& told) {
    RunRecord record;
    record.info.device = "cpu";
    for (int i = 0; i < 100; ++i) {
        record.steps.push_back({.step = i,
                                .start_ns = static_cast<std::int64_t>(i * told.step_ms * kMs),
                                .duration_ns = static_cast<std::int64_t>(told.step_ms * kMs),
                                .samples = 16,
                                .input_wait_ns = static_cast<std::int64_t>(told.wait_ms * kMs)});
    }
    std::string text = fmt::format(
        R"json({{"device":"cpu","steps":100,"world_size":1,"flags":{{"cores":{0},"threads":1}},
        "steps_by_loader":[{{"loader":1,"steps":100}}],
        "loaders":[{{"id":0}},{{"id":1,"type":"Folder","dataset_size":900,"batch_size":{7},"num_workers":{1},
          "persistent_workers":false,"in_memory":{2},{6}
          "site":{{"file":"train.py","line":5,"function":"main"}},
          "call":{{"end_line":5,"end_column":13,"spreads":false,"keywords":{{}},"first_line":5,
                   "lines":["l = Loader(d)"]}}}}],
        "fetches":[{{"loader":1,"worker":-1,"batches":100,"wall_ns":{3},"measured":100,
                     "measured_wall_ns":{3},"cpu_ns":{4},"delay_ns":0}}]{5}}})json",
        told.cores, told.workers, told.in_memory, 100 * told.fetch_ms * kMs,
        100 * told.on_core_ms * kMs, told.more, told.of_loader, told.batch_size);
    record.python = Json::parse(text, "python.json");
    return record;
}

const Finding* find(const Diagnosis& diagnosis, const std::string& id) {
    auto at = std::ranges::find(diagnosis.findings, id, &Finding::id);
    return at == diagnosis.findings.end() ? nullptr : &*at;
}

TEST(FindingsPythonTest, DroppingGradientsIsNotAdvisedBeforeARunHasShownThatItIsSafe) {
    Diagnosis diagnosis = diagnose_run(record_of({.more = R"json(,"zero_grad":{"to_zero":100,
          "site":{"file":"train.py","line":9,"function":"main"},
          "call":{"end_line":9,"end_column":32,"spreads":false,"keywords":{},"first_line":9,
                  "lines":["opt.zero_grad(set_to_none=False)"]}})json"}),
                                       "");
    const Finding* zeros = find(diagnosis, "F14");
    ASSERT_NE(zeros, nullptr);
    EXPECT_TRUE(zeros->settings.empty());
    EXPECT_TRUE(zeros->patch.empty());
    EXPECT_THAT(zeros->surer, HasSubstr("--apply set_to_none"));
}

TEST(FindingsPythonTest, CoresThatAllWorkAreNotCountedInFull) {
    // 80 ms of decoding and 4 ms of model on 2 cores: 84 / (2 x 0.75) + 0.3 ms in place of 84.
    Diagnosis diagnosis =
        diagnose_run(record_of({.step_ms = 84, .wait_ms = 80, .on_core_ms = 80, .cores = 2}), "r");
    const Finding* wait = find(diagnosis, "F01");
    ASSERT_TRUE(wait);
    EXPECT_EQ(wait->fix, "num_workers=2, persistent_workers=True");
    EXPECT_NEAR(wait->gain.likely, 84 / 56.3, 0.01);
    EXPECT_NEAR(wait->gain.high, 84 / 42.0, 0.01);  // 2 cores cannot give more than twice
}

TEST(FindingsPythonTest, CoresThatOthersKeepBusyAreNotPromised) {
    // One of two cores is somebody else's: two workers get two thirds of both.
    RunRecord record = record_of({.step_ms = 84, .wait_ms = 80, .on_core_ms = 80, .cores = 2});
    for (int i = 1; i < 8; ++i) {
        HostSample host{.time_ns = i * 1'000'000'000LL, .cpu_percent = 100, .cores = 2};
        host.tree = TreeSample{.cpu_percent = 100};
        record.hosts.push_back(host);
    }
    Diagnosis diagnosis = diagnose_run(record, "r");
    const Finding* wait = find(diagnosis, "F01");
    ASSERT_TRUE(wait);
    EXPECT_THAT(wait->fix, HasSubstr("the 2 cores are full, so workers would not help"));
    for (HostSample& host : record.hosts) host.cpu_percent = 60;
    diagnosis = diagnose_run(record, "r");
    EXPECT_NEAR(find(diagnosis, "F01")->gain.likely, 84 / (84 / (4 / 2.2) / 0.75 + 0.3), 0.01);
}

TEST(FindingsPythonTest, SlowStorageAsksForWorkersWithAnEdit) {
    Diagnosis diagnosis = diagnose_run(record_of({}), "r");
    const Finding* wait = find(diagnosis, "F01");
    ASSERT_TRUE(wait);
    EXPECT_EQ(wait->where, "train.py:5 (main)");
    EXPECT_EQ(wait->fix, "num_workers=5, persistent_workers=True");  // 1.2 x 80 / 20
    EXPECT_THAT(wait->evidence, HasSubstr("one batch takes 80.0 ms, mostly waiting for storage"));
    EXPECT_NEAR(wait->gain.likely, 100 / 20.3, 0.01);
    const Finding* part = find(diagnosis, "F02");
    ASSERT_TRUE(part);
    EXPECT_EQ(part->part_of, "F01");
    EXPECT_EQ(part->patch,
              "--- train.py\n+++ train.py\n@@ -5,1 +5,1 @@\n-l = Loader(d)\n"
              "+l = Loader(d, num_workers=5, persistent_workers=True)\n");
}

// 3 workers should have a batch of 60 ms every 20 ms, and one comes every 60 ms: some take far
// longer than the mean. Waiting for storage needs no core, so more of them help.
TEST(FindingsPythonTest, WorkersThatAreEnoughByTheirMeanTimeAreNotWhereTheLoopWaits) {
    Told told{.step_ms = 60, .wait_ms = 30, .fetch_ms = 60, .workers = 3, .cores = 2};
    Diagnosis diagnosis = diagnose_run(record_of(told), "r");
    EXPECT_EQ(find(diagnosis, "F01")->fix, "num_workers=8");  // 1.2 x 3 x 60 / 30
    told.on_core_ms = 60;  // of decoding there are as many as cores
    diagnosis = diagnose_run(record_of(told), "r");
    EXPECT_THAT(find(diagnosis, "F01")->fix, HasSubstr("no free core"));
}

// Short epochs: 8 workers are started, ended and waited for in every one of 16 steps, which come in
// two waves.
TEST(FindingsPythonTest, WorkersThatAreStartedInEveryEpochCostPartOfTheirGain) {
    Told told{.step_ms = 70, .wait_ms = 66, .fetch_ms = 68, .workers = 1, .cores = 2};
    EXPECT_NEAR(find(diagnose_run(record_of(told), "r"), "F01")->gain.likely, 70 / 8.8, 0.01);
    told.batch_size = 57;  // of 900 samples
    RunRecord record = record_of(told);
    for (int i = 0; i < 6; ++i)
        record.events.push_back({.kind = EventKind::epoch,
                                 .time_ns = static_cast<std::int64_t>(i * 16 * 70 * kMs),
                                 .duration_ns = static_cast<std::int64_t>(11 * kMs),
                                 .step = i * 16});
    double before = 16 * 70 + 2 * 11, after = 2 * 68 + 8 * (4 + 0.3) + 8 * 2 * 11;
    Diagnosis diagnosis = diagnose_run(record, "r");
    EXPECT_EQ(find(diagnosis, "F01")->fix, "num_workers=8");
    EXPECT_NEAR(find(diagnosis, "F01")->gain.likely, before / after, 0.01);
}

// Five evaluations take as long as the steps; one in five is left.
TEST(FindingsPythonTest, PausesThatAreRarerGainMostOfTheirTime) {
    RunRecord record = record_of({});
    for (int i = 0; i < 5; ++i)
        record.events.push_back({.kind = EventKind::evaluation,
                                 .time_ns = static_cast<std::int64_t>(i * 2000 * kMs),
                                 .duration_ns = static_cast<std::int64_t>(2000 * kMs),
                                 .step = i * 20});
    Diagnosis diagnosis = diagnose_run(record, "r");
    const Finding* pause = find(diagnosis, "F23");
    ASSERT_TRUE(pause);
    EXPECT_NEAR(pause->share_percent, 50, 0.01);
    EXPECT_NEAR(pause->gain.likely, 1 / 0.6, 0.01);
    EXPECT_NEAR(pause->gain.high, 2, 0.01);
}

// 10 workers on cores that others use: 6 % of the time is waiting, and nothing gains 3 %.
TEST(FindingsPythonTest, ACauseThatNoChangeRelievesIsStillNamed) {
    RunRecord record =
        record_of({.wait_ms = 6, .fetch_ms = 60, .on_core_ms = 60, .workers = 10, .cores = 2});
    for (int i = 1; i < 10; ++i) {
        HostSample host{.time_ns = i * 1'000'000'000LL, .cpu_percent = 100, .cores = 2};
        host.tree = TreeSample{.cpu_percent = 40, .run_queue_percent = 170};
        record.hosts.push_back(host);
    }
    Diagnosis diagnosis = diagnose_run(record, "r");
    EXPECT_TRUE(diagnosis.shown(5, false).empty());
    EXPECT_EQ(diagnosis.verdict,
              "biggest cause: waiting for data, 6 % of the step time; no change is expected to "
              "gain 3 %");
    const char* others =
        "other work uses 1.6 of the 2 cores of this machine, and this job's tasks wait for a core";
    ASSERT_EQ(diagnosis.health.size(), 1u);
    EXPECT_EQ(diagnosis.health[0].text, others);
    for (HostSample& host : record.hosts) host.tree->run_queue_percent = 0;
    EXPECT_TRUE(diagnose_run(record, "r").health.empty()) << "it takes nothing from the job";
}

// Others keep both cores busy: the job gets half a core, and waits 40 ms of 100 ms for storage.
TEST(FindingsPythonTest, WaitingForStorageIsOverlappedOnFullCoresToo) {
    RunRecord record =
        record_of({.step_ms = 100, .wait_ms = 40, .fetch_ms = 40, .on_core_ms = 4, .cores = 2});
    for (int i = 1; i < 10; ++i) {
        HostSample host{.time_ns = i * 1'000'000'000LL, .cpu_percent = 100, .cores = 2};
        host.tree = TreeSample{.cpu_percent = 50, .run_queue_percent = 80};
        record.hosts.push_back(host);
    }
    Diagnosis diagnosis = diagnose_run(record, "r");
    EXPECT_THAT(find(diagnosis, "F01")->fix, HasSubstr("num_workers="));
    EXPECT_NEAR(find(diagnosis, "F01")->gain.likely, 100 / 64.3, 0.01);
}

TEST(FindingsPythonTest, FullCoresAreNotAskedForWorkers) {
    Diagnosis diagnosis = diagnose_run(record_of({.on_core_ms = 80, .cores = 1}), "r");
    const Finding* wait = find(diagnosis, "F01");
    ASSERT_TRUE(wait);
    EXPECT_THAT(wait->fix, HasSubstr("the 1 core is full, so workers would not help"));
    EXPECT_TRUE(wait->settings.empty());
    EXPECT_EQ(find(diagnosis, "F02")->patch, "");
    for (const Finding& shown : diagnosis.shown(99, false)) EXPECT_NE(shown.id, "F02");
}

TEST(FindingsPythonTest, TensorsInMemoryAreNotAskedForWorkers) {
    Diagnosis diagnosis = diagnose_run(record_of({.in_memory = true}), "r");
    EXPECT_THAT(find(diagnosis, "F01")->fix, HasSubstr("cut whole batches out of them"));
    EXPECT_FALSE(find(diagnosis, "F02"));
}

TEST(FindingsPythonTest, ImagesThatSaturatesLoaderTakesAreToldOfIt) {
    Told told{.step_ms = 84, .wait_ms = 80, .on_core_ms = 80, .workers = 2, .cores = 2};
    told.of_loader = R"("saturate_loader":{"takes":true,"why":null,"is_installed":false},)";
    Diagnosis diagnosis = diagnose_run(record_of(told), "r");
    EXPECT_THAT(find(diagnosis, "F01")->fix,
                HasSubstr("or saturate_gpu.Loader.like(DataLoader(...)), whose C++ threads decode "
                          "the same images with fewer cores, once saturate's wheel is installed "
                          "there: saturate fix tries it"));
    EXPECT_TRUE(find(diagnosis, "F01")->settings.empty());  // no key of a configuration does it
    // A third of the 80 ms of decoding and the 4 ms of the model, on two cores.
    EXPECT_NEAR(find(diagnosis, "F01")->gain.likely, 84 / ((80 / 2.9 + 4) / 2), 0.01);
    told.of_loader =
        R"("saturate_loader":{"takes":false,"why":"no RandAugment","is_installed":true},)";
    diagnosis = diagnose_run(record_of(told), "r");
    EXPECT_THAT(find(diagnosis, "F01")->fix, testing::Not(HasSubstr("saturate_gpu")));
    EXPECT_THAT(find(diagnosis, "F01")->evidence,
                HasSubstr("saturate_gpu.Loader does not support this data set: no RandAugment"));
    // Storage that is slow stays slow.
    told.on_core_ms = 1;
    diagnosis = diagnose_run(record_of(told), "r");
    EXPECT_THAT(find(diagnosis, "F01")->evidence, testing::Not(HasSubstr("saturate_gpu")));
}

TEST(FindingsPythonTest, SaturatesOwnLoaderIsNotAskedForWorkers) {
    Told told{.of_loader = R"("library":"saturate_gpu","why_slow":"decode 97 %",)"};
    Diagnosis diagnosis = diagnose_run(record_of(told), "r");
    EXPECT_THAT(find(diagnosis, "F01")->evidence, HasSubstr("saturate_gpu.Loader: decode 97 %"));
    EXPECT_THAT(find(diagnosis, "F01")->fix, testing::Not(HasSubstr("num_workers")));
    EXPECT_TRUE(find(diagnosis, "F01")->settings.empty());
    EXPECT_FALSE(find(diagnosis, "F02"));
}

TEST(FindingsPythonTest, SmallBatchesAreNotAskedForWorkers) {
    Diagnosis diagnosis = diagnose_run(
        record_of({.step_ms = 2, .wait_ms = 0.8, .fetch_ms = 0.7, .on_core_ms = 0.7}), "r");
    EXPECT_THAT(find(diagnosis, "F01")->fix, HasSubstr("the batches are small"));
    EXPECT_FALSE(find(diagnosis, "F02"));
}

TEST(FindingsPythonTest, AWellFedJobHasNoFinding) {
    Diagnosis diagnosis = diagnose_run(record_of({.wait_ms = 1, .workers = 4}), "r");
    EXPECT_TRUE(diagnosis.shown(99, false).empty());
}

TEST(FindingsPythonTest, WorkersStartedAnewAreFelt) {
    RunRecord record = record_of({.wait_ms = 1, .workers = 4});
    for (int i = 0; i < 3; ++i)
        record.events.push_back(
            {.kind = EventKind::epoch, .time_ns = i, .duration_ns = 1'000'000'000});
    Diagnosis diagnosis = diagnose_run(record, "r");
    const Finding* restart = find(diagnosis, "F05");
    ASSERT_TRUE(restart);
    EXPECT_THAT(restart->evidence, HasSubstr("restarted 2 times, which takes 2.0 s"));
    EXPECT_THAT(restart->patch, HasSubstr("+l = Loader(d, persistent_workers=True)\n"));
}

TEST(FindingsPythonTest, WorkersDoNotStayWhereASecondIteratorLives) {
    RunRecord record = record_of({.workers = 2});
    auto with = [&](const std::string& name, const std::string& value) {
        std::string text = record.python.pretty();
        std::size_t at = text.find("\"type\"");
        text.insert(at, fmt::format("\"{}\":{},", name, value));
        RunRecord out = record;
        out.python = Json::parse(text, "python.json");
        return out;
    };
    for (int i = 0; i < 4; ++i)
        record.events.push_back({.kind = EventKind::epoch, .duration_ns = 1'000'000'000});
    EXPECT_TRUE(find(diagnose_run(record, "r"), "F05"));
    EXPECT_FALSE(find(diagnose_run(with("second_iterators", "3"), "r"), "F05"));
    record = record_of({});
    EXPECT_THAT(find(diagnose_run(record, "r"), "F01")->fix, HasSubstr("persistent_workers=True"));
    EXPECT_THAT(find(diagnose_run(with("second_iterators", "3"), "r"), "F01")->fix,
                testing::Not(HasSubstr("persistent_workers")));
}

TEST(FindingsPythonTest, WhatATraceAdvisesForgetsWorkersThatStay) {
    std::vector<Finding> findings = {{.id = "F05"}};
    findings[0].settings = {{"persistent_workers", "true"}, {"prefetch_factor", "4"}};
    advise_no_persistence(findings);
    EXPECT_EQ(findings[0].fix_text(), "a larger prefetch_factor");
    ASSERT_EQ(findings[0].settings.size(), 1u);
    EXPECT_EQ(findings[0].settings[0].key, "prefetch_factor");
}

TEST(FindingsPythonTest, ReadsAndCollectionsAreNamedFromFivePercentOn) {
    std::string reads =
        R"(,"reads":[{"call":"item","count":100,"ns":3e9,"site":{"file":"train.py","line":9,"function":"log"}}],"gc":{"ns":1e9,"longest_in_step_ns":5e7})";
    Diagnosis diagnosis = diagnose_run(record_of({.wait_ms = 1, .workers = 4, .more = reads}), "r");
    const Finding* read = find(diagnosis, "F06");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->where, "train.py:9 (log)");
    EXPECT_NEAR(read->share_percent, 30, 0.01);
    EXPECT_LT(read->gain.likely, 1.05);  // the device works meanwhile
    ASSERT_TRUE(find(diagnosis, "F11"));
    EXPECT_THAT(find(diagnosis, "F11")->evidence, HasSubstr("garbage collector takes 10.0 %"));
}

TEST(FindingsPythonTest, ReadsThatDoNotWaitAreNoFinding) {
    std::string reads =
        R"(,"reads":[{"call":"item","count":100,"waits":0,"ns":3e9,"site":null},{"call":"cpu","count":9,"waits":9,"ns":1e9,"site":{"file":"train.py","line":7,"function":"log"}}])";
    Diagnosis diagnosis = diagnose_run(record_of({.wait_ms = 1, .workers = 4, .more = reads}), "r");
    const Finding* read = find(diagnosis, "F06");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->count, 9);
    EXPECT_EQ(read->where, "train.py:7 (log)");
    EXPECT_NEAR(read->share_percent, 10, 0.01);
}

TEST(FindingsPythonTest, OneLongCollectionIsNoHabit) {
    std::string once = R"(,"gc":{"ns":1.1e9,"longest_in_step_ns":1e9})";
    Diagnosis diagnosis = diagnose_run(record_of({.wait_ms = 1, .workers = 4, .more = once}), "r");
    EXPECT_FALSE(find(diagnosis, "F11"));
}

}  // namespace
}  // namespace saturate
