// SPDX-License-Identifier: Apache-2.0
#include "tuning/moves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saturate {
namespace {

Facts gpu_facts() {
    return {.cores = 8, .on_cpu = false, .has_bf16 = true, .has_tf32 = true, .has_images = true};
}

const Assignment kAllOff = {{"num_workers", "0"},       {"precision", "none"},
                            {"tf32", "false"},          {"set_to_none", "false"},
                            {"channels_last", "false"}, {"cudnn_benchmark", "false"},
                            {"pin_memory", "false"}};

std::vector<std::string> names(const std::vector<Move>& moves) {
    std::vector<std::string> out;
    for (const Move& move : moves) {
        for (const auto& [key, value] : move.change) {
            out.push_back(key);
            break;
        }
    }
    return out;
}

TEST(MovesTest, EveryMoveIsARowOfTheCatalogueThatATrialCanJudge) {
    Rate rate{.per_second = 100, .step_seconds = 0.32, .input_wait_share = 0.5};
    std::vector<Move> moves = compute_moves(gpu_facts(), kAllOff, 0.32);
    for (const Move& move : loader_moves(gpu_facts(), kAllOff, rate, 200)) moves.push_back(move);
    EXPECT_GT(moves.size(), 6u);
    for (const Move& move : moves) {
        for (const auto& [key, value] : move.change) {
            const Remedy* remedy = find_remedy(key);
            ASSERT_TRUE(remedy) << key;
            EXPECT_TRUE(remedy->is_measured) << key;
        }
    }
}

TEST(MovesTest, AsManyWorkersAsTheCatalogueSays) {
    Rate rate{.per_second = 100, .step_seconds = 0.4, .input_wait_share = 0.75};
    Facts facts = gpu_facts();
    std::vector<Move> moves = loader_moves(facts, {{"num_workers", "0"}}, rate, 400);
    ASSERT_FALSE(moves.empty());
    facts.loader = LoaderTimes{.fetch_seconds = 0.3, .compute_seconds = 0.1};
    EXPECT_EQ(moves[0].change.at("num_workers"), std::to_string(worker_count(facts)));
    EXPECT_EQ(moves[0].change.at("num_workers"), "4");
}

// The rates alone do not tell decoding from waiting for storage, which takes no core.
TEST(MovesTest, WorkersThatWaitForStorageMayBeMoreThanTheCores) {
    Facts facts{.cores = 2, .on_cpu = true, .is_python = true};
    Rate rate{.per_second = 100, .step_seconds = 0.4, .input_wait_share = 0.75};
    std::vector<Move> moves = loader_moves(facts, {{"num_workers", "2"}}, rate, 0);
    Finding wait{.id = "F01", .share_percent = 75};
    wait.settings = {{"num_workers", "8"}};
    add_watched_workers(moves, {wait});
    ASSERT_FALSE(moves.empty());
    EXPECT_EQ(moves[0].change, (Assignment{{"num_workers", "8"}}));
    std::size_t before = moves.size();
    add_watched_workers(moves, {wait});
    EXPECT_EQ(moves.size(), before);
}

TEST(MovesTest, TheBiggestCauseNamesTheNextRemedy) {
    std::vector<Move> moves = compute_moves(gpu_facts(), kAllOff, 0.1);
    std::vector<std::string> before = names(moves);
    order_by_cause(moves, {{.id = "F14", .share_percent = 4}, {.id = "F19", .share_percent = 30}});
    std::vector<std::string> after = names(moves);
    EXPECT_EQ(after.at(0), "channels_last");
    EXPECT_EQ(after.at(1), "set_to_none");
    order_by_cause(moves, {});
    EXPECT_EQ(names(moves), after) << "without a cause their order stays";
    EXPECT_THAT(after, testing::UnorderedElementsAreArray(before));
}

TEST(MovesTest, ALevelIsALimit) {
    Facts facts = gpu_facts();
    facts.level = Level::safe;
    for (const Move& move : compute_moves(facts, {}, 0.1)) {
        for (const auto& [key, value] : move.change)
            EXPECT_EQ(find_remedy(key)->level(), Level::safe) << key;
    }
    EXPECT_FALSE(compiler_move(facts, {}));
}

TEST(MovesTest, OnACpuNothingForAGpuIsTried) {
    Facts facts{.cores = 2, .on_cpu = true, .has_images = true};
    for (const Move& move : compute_moves(facts, {}, 0.005)) {
        for (const auto& [key, value] : move.change) EXPECT_FALSE(find_remedy(key)->for_gpu) << key;
    }
}

}  // namespace
}  // namespace saturate
