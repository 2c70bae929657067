// SPDX-License-Identifier: Apache-2.0
#include "telemetry/python_job.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/ring_file.h"
#include "support/run.h"

namespace saturate {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// One process whose ring holds `records`, read to its end.
struct Job {
    explicit Job(const std::vector<RingRecord>& records)
        : job(folder.path(), [this](const PythonProcess&) { return &kept; }) {
        RingFile file(256);
        for (const RingRecord& record : records) file.add(record);
        file.save(folder.path() / "ring.4711");
        job.poll(true);
    }
    PythonProcess& process() { return *job.processes().at(0); }
    TemporaryFolder folder;
    MemoryRecorder kept;
    PythonJob job;
};

RingRecord training(std::int64_t number, std::int64_t gc_ns = 0) {
    return {.kind = 1,
            .samples = 8,
            .start_ns = number * 10 * kMs,
            .duration_ns = 10 * kMs,
            .wait_ns = kMs,
            .gc_ns = gc_ns,
            .backwards = 1,
            .optimizer_steps = 1};
}

TEST(PythonJobTest, CollectionsOfTheFirstStepsAreOfTheStart) {
    std::vector<RingRecord> records;
    for (int i = 0; i < 5; ++i) records.push_back(training(i, 70 * kMs));
    records.push_back(training(5, 2 * kMs));
    records.push_back(training(6, 3 * kMs));
    Job job(records);
    EXPECT_EQ(job.process().gc_ns, 5 * kMs);
    EXPECT_EQ(job.process().gc_longest_ns, 3 * kMs);
    EXPECT_EQ(job.process().python_json()["gc"]["ns"].integer(), 5 * kMs);
}

TEST(PythonJobTest, BatchesWithoutBackwardAreOneEvaluation) {
    RingRecord batch{.kind = 2, .loader = 1, .samples = 8, .duration_ns = kMs};
    std::vector<RingRecord> records = {training(0)};
    for (int i = 0; i < 3; ++i) {
        batch.start_ns = 10 * kMs + i * kMs;
        records.push_back(batch);
    }
    records.push_back(training(2));
    Job job(records);
    EXPECT_EQ(job.kept.steps.size(), 2u);
    ASSERT_EQ(job.kept.events.size(), 1u);
    EXPECT_EQ(job.kept.events[0].kind, EventKind::evaluation);
    EXPECT_EQ(job.kept.events[0].text, "3 batches");
    EXPECT_EQ(job.kept.events[0].duration_ns, 3 * kMs);
}

// Lightning asks for no batch after the last one of an epoch: its step goes on until the loader of
// the evaluation is asked.
TEST(PythonJobTest, TheLoaderOfAnEvaluationStartsNoEpoch) {
    auto start = [](std::uint32_t loader, std::int64_t at) {
        return RingRecord{.kind = 3, .loader = loader, .start_ns = at, .duration_ns = kMs};
    };
    RingRecord batch{
        .kind = 2, .loader = 1, .samples = 8, .start_ns = 31 * kMs, .duration_ns = kMs};
    Job job({start(0, 5 * kMs), training(1), start(1, 28 * kMs), training(2), batch,
             start(0, 35 * kMs), training(4)});
    std::vector<EventKind> kinds;
    for (const EventRecord& event : job.kept.events) kinds.push_back(event.kind);
    EXPECT_EQ(kinds, (std::vector{EventKind::epoch, EventKind::evaluation, EventKind::epoch}));
    EXPECT_EQ(job.kept.events[1].time_ns, 28 * kMs) << "with the start of its loader";
}

// accelerate asks for two batches before the first step of an epoch.
TEST(PythonJobTest, ABatchThatIsAskedForAheadHidesNoEpoch) {
    auto start = [](std::int64_t at) {
        return RingRecord{.kind = 3, .start_ns = at, .duration_ns = kMs};
    };
    RingRecord ahead{.kind = 2, .samples = 8, .start_ns = 36 * kMs, .duration_ns = kMs};
    Job job({start(5 * kMs), training(1), training(2), start(35 * kMs), ahead, training(4)});
    ASSERT_EQ(job.kept.events.size(), 2u);
    EXPECT_EQ(job.kept.events[1].kind, EventKind::epoch);
    EXPECT_EQ(job.kept.events[1].time_ns, 35 * kMs);
    EXPECT_EQ(job.kept.events[1].step, 2);
}

// A trial is compared with the run before it by these.
TEST(PythonJobTest, TotalsTellBatchesWithoutAStepFromEvaluation) {
    RingRecord step = training(0), skipped{.kind = 2, .batches = 1},
               evaluated{.kind = 2, .loader = 1, .batches = 1}, start{.kind = 3};
    step.batches = 2;
    step.losses = 1;
    step.loss = 0.5;
    RingRecord bad = step;
    bad.loss = std::nan("");
    RingRecord unknown = step;
    unknown.losses = 0;
    unknown.samples = 4;
    // accelerate asks for one batch ahead when an epoch starts.
    Job job({start, skipped, step, skipped, step, evaluated, evaluated, bad, unknown});
    Json python = job.process().python_json();
    EXPECT_EQ(python["totals"].line(),
              R"({"steps": 4, "batches": 9, "skipped_batches": 1, "evaluation_batches": 2, )"
              R"("backwards": 4, "optimizer_steps": 4, "losses": 3, "not_finite": 1})");
    EXPECT_EQ(python["losses"].line(), R"({"first": [[0, 0.5], [1, 0.5], [2, null]], "tail": []})");
    EXPECT_EQ(python["batch_sizes"].line(),
              R"([{"samples": 8, "steps": 3}, {"samples": 4, "steps": 1}])");
    EXPECT_EQ(python["steps_by_loader"].line(), R"([{"loader": 0, "steps": 4}])");
    EXPECT_EQ(job.kept.steps[0].loss, 0.5);
    EXPECT_FALSE(job.kept.steps[3].loss);
}

TEST(PythonJobTest, OfManyLossesTheFirstAndSomeLaterOnesAreKept) {
    std::vector<RingRecord> records;
    for (int i = 0; i < 180; ++i) {
        records.push_back(training(i));
        records.back().losses = 1;
        records.back().loss = i;
    }
    Job job(records);
    Json losses = job.process().python_json()["losses"];
    EXPECT_EQ(losses["first"].items().size(), 64u);
    EXPECT_LE(losses["tail"].items().size(), 65u);
    EXPECT_EQ(losses["tail"].items().back().line(), "[179, 179]");
}

}  // namespace
}  // namespace saturate
