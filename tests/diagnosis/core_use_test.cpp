// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/core_use.h"

#include <gtest/gtest.h>

namespace saturate {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// Ten seconds of steps on four cores, sampled every second from the first step on.
RunRecord record_of(double machine_percent, double tree_percent) {
    RunRecord record;
    record.python = Json::parse(R"({"world_size":1})", "python.json");
    for (int i = 0; i < 10; ++i) {
        record.steps.push_back({.step = i, .start_ns = i * kSecond, .duration_ns = kSecond});
        HostSample host{.time_ns = i * kSecond, .cpu_percent = machine_percent, .cores = 4};
        host.tree = TreeSample{.cpu_percent = tree_percent};
        record.hosts.push_back(host);
    }
    return record;
}

TEST(CoreUseTest, TellsTheJobFromEverybodyElse) {
    CoreUse use = core_use(record_of(75, 125));
    EXPECT_NEAR(use.own, 1.25, 1e-9);
    EXPECT_NEAR(use.others, 1.75, 1e-9);
    EXPECT_EQ(use.n, 9u);  // the sample at the first step tells of the second before it
}

TEST(CoreUseTest, OtherRanksAreOthers) {
    RunRecord record = record_of(100, 400);
    record.python = Json::parse(R"({"world_size":4})", "python.json");
    CoreUse use = core_use(record);
    EXPECT_NEAR(use.own, 1, 1e-9);
    EXPECT_NEAR(use.others, 3, 1e-9);
}

TEST(CoreUseTest, AFewSamplesSayNothing) {
    RunRecord record = record_of(75, 125);
    record.hosts.resize(3);
    CoreUse use = core_use(record);
    EXPECT_EQ(use.n, 0u);
    EXPECT_EQ(use.usable({.tasks = 8, .cores = 4}), 4);
}

TEST(CoreUseTest, TasksGetWhatIsFreeOrTheirFairShare) {
    CoreUse quiet{.own = 1, .others = 0, .machine = 4, .n = 9};
    EXPECT_EQ(quiet.usable({.tasks = 2, .cores = 4}), 4);
    EXPECT_EQ(quiet.usable({.tasks = 8, .cores = 2}), 2);
    CoreUse shared{.own = 1, .others = 3, .machine = 4, .n = 9};
    EXPECT_EQ(shared.usable({.tasks = 1, .cores = 4}), 1);
    EXPECT_EQ(shared.usable({.tasks = 3, .cores = 4}), 2);
    // Half the time in the queue: seven others want the four cores.
    CoreUse crowded{.own = 0.5, .queued = 0.5, .others = 3.5, .machine = 4, .n = 9};
    EXPECT_EQ(crowded.usable({.tasks = 1, .cores = 4}), 0.5);
    EXPECT_EQ(crowded.usable({.tasks = 3, .cores = 4}), 1.2);
}

}  // namespace
}  // namespace saturate
