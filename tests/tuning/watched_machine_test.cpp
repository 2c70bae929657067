// SPDX-License-Identifier: Apache-2.0
#include "tuning/watched_machine.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

class WatchedMachineTest : public testing::Test {
  protected:
    // A loader of so many workers, and two threads that compute on a CPU.
    FixMachine after(int workers, double waits, const std::vector<Finding>& findings = {},
                     int threads = 2) {
        TrialResult watched;
        watched.record.python =
            Json::parse(R"({"loaders": [{"id": 0, "num_workers": )" + std::to_string(workers) +
                            R"(}], "steps_by_loader": [{"loader": 0, "steps": 9}],
                "device": "cpu", "flags": {"cores": 2, "threads": )" +
                            std::to_string(threads) + "}}",
                        "test");
        watched.samples_per_second =
            Rate{.per_second = 10, .steps = 9, .step_seconds = 0.8, .input_wait_share = waits};
        return watched_machine({.workers = 1, .cores = 2}, {}, watched, findings);
    }
};

TEST_F(WatchedMachineTest, OfMoreWorkersThanCoresFewerAreTried) {
    EXPECT_EQ(after(8, 0.3).workers, 2);
    EXPECT_TRUE(after(8, 0.3).is_watched);
    EXPECT_FALSE(after(2, 0.3).is_watched);
    EXPECT_FALSE(after(8, 0.01).is_watched);
}

TEST_F(WatchedMachineTest, ThreadsLeaveCoresToWorkersThatAreWaitedFor) {
    EXPECT_EQ(after(1, 0.3).threads, 1);
    EXPECT_EQ(after(8, 0.3).threads, 1);
    EXPECT_EQ(after(8, 0.01).threads, 0);
    EXPECT_FALSE(after(1, 0.3).threads_for_workers);
}

// A finding that counts workers and cores alone does not know that batches come late.
TEST_F(WatchedMachineTest, WhereBatchesComeLateEveryCoreHasAWorker) {
    std::vector<Finding> crowded = {{.id = "F30", .settings = {{"num_workers", "1"}}}};
    EXPECT_EQ(after(8, 0.3, crowded).workers, 2);
    EXPECT_EQ(after(8, 0.01, crowded).workers, 1);
}

// Workers that are to come take the cores that the model's threads have now.
TEST_F(WatchedMachineTest, ThreadsLeaveCoresToWorkersThatAreToBe) {
    EXPECT_EQ(after(0, 0.3).threads, 1);
    EXPECT_TRUE(after(0, 0.3).threads_for_workers);
    EXPECT_EQ(after(0, 0.01).threads, 0);
    EXPECT_FALSE(after(0, 0.01).threads_for_workers);
}

// They relieve a cause of their own, so they are tried also if workers bring nothing.
TEST_F(WatchedMachineTest, FewerThreadsThanThereAreTooManyOfAreNoRoomForWorkers) {
    EXPECT_EQ(after(0, 0.3, {}, 64).threads, 2);
    EXPECT_FALSE(after(0, 0.3, {}, 64).threads_for_workers);
}

}  // namespace
}  // namespace saturate
