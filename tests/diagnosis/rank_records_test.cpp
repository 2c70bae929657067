// SPDX-License-Identifier: Apache-2.0
// Records of several ranks read together.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnosis/diagnosis.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;

// Steps of 10 ms; on each rank so many of them in exposed communication. `more`: further members of
// each step, with a comma before them.
void write_rank(const TemporaryFolder& folder, const std::string& name, int rank, double wait_ms,
                double input_ms, const std::string& more = "") {
    std::filesystem::create_directories(folder.path() / name);
    folder.file(name + "/run.json",
                fmt::format(R"({{"schema": 1, "kind": "train", "device": "cpu", "rank": {},
                            "world_size": 3, "started_ns": 0}})",
                            rank));
    std::string steps;
    for (int i = 0; i < 60; ++i) {
        steps += fmt::format(
            "{{\"step\": {}, \"t_ns\": {}, \"duration_ns\": 10000000, \"samples\": 8, "
            "\"input_wait_ns\": {:.0f}, \"communication_ns\": {:.0f}{}}}\n",
            i, i * 10'000'000, input_ms * 1e6, wait_ms * 1e6, more);
    }
    folder.file(name + "/steps.jsonl", steps);
}

TEST(RankRecordsTest, TheRankThatOthersWaitForSpeaksForTheJob) {
    TemporaryFolder folder;
    write_rank(folder, "run", 0, 4.0, 0.1);
    write_rank(folder, "run/rank1", 1, 0.5, 3.6);
    write_rank(folder, "run/rank2", 2, 4.1, 0.1);
    Diagnosis found = diagnose_run_folder(folder.path() / "run");
    ASSERT_TRUE(found.ranks);
    EXPECT_EQ(found.ranks->late, std::vector<int>{1});
    EXPECT_EQ(found.ranks->collectives, 60u);
    EXPECT_EQ(found.inputs.size(), 3u);
    ASSERT_FALSE(found.findings.empty());
    EXPECT_EQ(found.findings[0].id, "F17");
    // (3.5 + 0 + 3.6) / 3 of 10 ms
    EXPECT_NEAR(found.findings[0].share_percent, 23.7, 0.1);
    EXPECT_THAT(found.verdict, HasSubstr("rank 1 holds up the others: they wait 35 % of the time"));
    // Its own cause is what is to be fixed.
    bool has_input = false;
    for (const Finding& finding : found.findings) has_input = has_input || finding.id == "F01";
    EXPECT_TRUE(has_input);
}

// A Python job tells of its waits for data only. Steps of 10 ms on every rank.
TEST(RankRecordsTest, WhoWaitsForDataAloneHoldsTheOthersUp) {
    TemporaryFolder folder, apart;
    auto write = [](const TemporaryFolder& where, const std::string& name, int rank, int step_us,
                    int input_us) {
        write_rank(where, name, rank, 0, 0);
        std::string steps;
        for (int i = 0; i < 60; ++i)
            steps += fmt::format(
                "{{\"step\": {}, \"t_ns\": {}, \"duration_ns\": {}, \"samples\": 8, "
                "\"input_wait_ns\": {}}}\n",
                i, i * step_us * 1000, step_us * 1000, input_us * 1000);
        where.file(name + "/steps.jsonl", steps);
    };
    write(folder, "run", 0, 10'000, 100);
    write(folder, "run/rank1", 1, 10'050, 8'000);
    write(folder, "run/rank2", 2, 10'000, 100);
    Diagnosis found = diagnose_run_folder(folder.path() / "run");
    ASSERT_TRUE(found.ranks);
    EXPECT_EQ(found.ranks->late, std::vector<int>{1});
    ASSERT_FALSE(found.findings.empty());
    EXPECT_EQ(found.findings[0].id, "F17");
    EXPECT_NEAR(found.findings[0].share_percent, 53, 2);  // 7.9 ms on two of three ranks
    EXPECT_THAT(found.verdict, HasSubstr("rank 1 holds up the others"));
    EXPECT_THAT(found.findings[0].evidence,
                HasSubstr("waits longest for its data: the others wait for it 7."));
    // Ranks that do not end their steps together wait for nobody.
    write(apart, "run", 0, 2'000, 100);
    write(apart, "run/rank1", 1, 10'000, 8'000);
    write(apart, "run/rank2", 2, 2'000, 100);
    Diagnosis free = diagnose_run_folder(apart.path() / "run");
    EXPECT_TRUE(free.ranks->late.empty());
}

TEST(RankRecordsTest, EvenRanksHaveNobodyToBlame) {
    TemporaryFolder folder;
    for (int rank = 0; rank < 3; ++rank)
        write_rank(folder, rank == 0 ? "run" : fmt::format("run/rank{}", rank), rank,
                   2.0 + 0.01 * rank, 0);
    Diagnosis found = diagnose_run_folder(folder.path() / "run");
    ASSERT_TRUE(found.ranks);
    EXPECT_TRUE(found.ranks->late.empty());
    ASSERT_FALSE(found.findings.empty());
    EXPECT_EQ(found.findings[0].id, "F15");  // exposed on all of them
}

const Finding* find(const Diagnosis& diagnosis, const std::string& id) {
    for (const Finding& finding : diagnosis.findings) {
        if (finding.id == id) return &finding;
    }
    return nullptr;
}

TEST(RankRecordsTest, SaysHowMuchOfTheCommunicationIsHidden) {
    TemporaryFolder folder;
    for (int rank = 0; rank < 3; ++rank)
        write_rank(folder, rank == 0 ? "run" : fmt::format("run/rank{}", rank), rank, 2.0, 0,
                   ", \"communication_total_ns\": 5000000");
    Diagnosis found = diagnose_run_folder(folder.path() / "run");
    const Finding* exposed = find(found, "F15");
    ASSERT_NE(exposed, nullptr);
    EXPECT_EQ(exposed->evidence,
              "exposed communication takes 20.0 % of the step time (2.0 ms per step over 60 "
              "steps); gradients are being sent 50.0 % of it, 60 % of that during the backward "
              "pass");
    EXPECT_EQ(exposed->fix_text(),
              "send less per sample: a larger batch_size or gradient_accumulation_steps, "
              "gradient_compression: bf16; else a faster network");
    EXPECT_EQ(find(found, "F16"), nullptr);
}

// Whether 200 collectives of `bytes` in all are many small ones.
std::optional<Finding> small_collectives(double wait_ms, std::int64_t count, std::int64_t bytes) {
    TemporaryFolder folder;
    for (int rank = 0; rank < 3; ++rank)
        write_rank(folder, rank == 0 ? "run" : fmt::format("run/rank{}", rank), rank, wait_ms, 0,
                   fmt::format(", \"collectives\": {}, \"communication_bytes\": {}", count, bytes));
    Diagnosis found = diagnose_run_folder(folder.path() / "run");
    const Finding* finding = find(found, "F16");
    return finding ? std::optional(*finding) : std::nullopt;
}

TEST(RankRecordsTest, ManySmallCollectivesAreAFinding) {
    auto finding = small_collectives(2.0, 200, 200 * 2048);
    ASSERT_TRUE(finding);
    EXPECT_EQ(finding->evidence,
              "200 collectives per step, of 2.0 KiB each; waiting for them after the backward pass "
              "takes 20.0 % of the step time (2.0 ms per step over 60 steps)");
    EXPECT_EQ(finding->count, 60 * 200);
    EXPECT_EQ(finding->part_of, "F15");
    ASSERT_EQ(finding->settings.size(), 1u);
    EXPECT_EQ(finding->settings[0].key, "bucket_size");
    // Hidden well, they are still there, on their own and without a gain.
    auto hidden = small_collectives(0.1, 200, 200 * 2048);
    ASSERT_TRUE(hidden);
    EXPECT_EQ(hidden->part_of, "");
    EXPECT_LT(hidden->gain.likely, 1.03);
    EXPECT_FALSE(small_collectives(2.0, 50, 50 * 2048));                 // few
    EXPECT_FALSE(small_collectives(2.0, 200, std::int64_t{200} << 20));  // large
}

TEST(RankRecordsTest, SaysWhenARankIsMissing) {
    TemporaryFolder folder;
    write_rank(folder, "run", 0, 1, 0);
    write_rank(folder, "run/rank1", 1, 1, 0);
    Diagnosis found = diagnose_run_folder(folder.path() / "run");
    std::string said;
    for (const HealthNote& note : found.health) said += note.text + "\n";
    EXPECT_THAT(said, HasSubstr("2 of 3 ranks are here"));
}

}  // namespace
}  // namespace saturate
