// SPDX-License-Identifier: Apache-2.0
#include "tuning/trial_cache.h"

#include <gtest/gtest.h>

#include "support/run.h"

namespace saturate {
namespace {

TrialResult good() {
    TrialResult result;
    result.samples_per_second = Rate{.per_second = 412,
                                     .low = 404,
                                     .high = 419,
                                     .n = 8,
                                     .steps = 90,
                                     .step_seconds = 0.07,
                                     .input_wait_share = 0.4,
                                     .copy_share = 0.1,
                                     .log_share = 0.2,
                                     .device_busy_share = 0.3};
    result.samples_per_epoch = 1000;
    result.memory_peak_bytes = 5'000'000'000;
    return result;
}

TEST(TrialCacheTest, GivesBackWhatItKept) {
    TemporaryFolder folder;
    TrialCache cache(folder.path() / "trials");
    EXPECT_FALSE(cache.find("a"));
    cache.keep("a", good());
    auto found = cache.find("a");
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->ok());
    EXPECT_TRUE(found->from_cache);
    EXPECT_DOUBLE_EQ(found->samples_per_second->per_second, 412);
    EXPECT_DOUBLE_EQ(found->samples_per_second->input_wait_share, 0.4);
    EXPECT_DOUBLE_EQ(found->samples_per_second->copy_share, 0.1);
    EXPECT_DOUBLE_EQ(found->samples_per_second->log_share, 0.2);
    EXPECT_EQ(found->samples_per_second->device_busy_share, 0.3);
    EXPECT_EQ(found->samples_per_epoch, 1000);
    EXPECT_EQ(found->memory_peak_bytes, 5'000'000'000u);
    EXPECT_FALSE(cache.find("b"));
}

TEST(TrialCacheTest, KeepsOutOfMemoryButNoCrash) {
    TemporaryFolder folder;
    TrialCache cache(folder.path());
    cache.keep("full", {.outcome = TrialOutcome::out_of_memory, .message = "8 GiB"});
    cache.keep("crash", {.outcome = TrialOutcome::failed});
    ASSERT_TRUE(cache.find("full"));
    EXPECT_EQ(cache.find("full")->outcome, TrialOutcome::out_of_memory);
    EXPECT_FALSE(cache.find("crash"));
}

TEST(TrialCacheTest, ATornFileIsNoAnswer) {
    TemporaryFolder folder;
    TrialCache cache(folder.path());
    cache.keep("a", good());
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
        std::filesystem::resize_file(entry.path(), 20);
    EXPECT_FALSE(cache.find("a"));
}

TEST(TrialCacheTest, WithoutAFolderNothingIsKept) {
    TrialCache cache("");
    cache.keep("a", good());
    EXPECT_FALSE(cache.find("a"));
}

}  // namespace
}  // namespace saturate
