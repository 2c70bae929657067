// SPDX-License-Identifier: Apache-2.0
#include "telemetry/python_job.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace saturate
