// SPDX-License-Identifier: Apache-2.0
#include "telemetry/run_start.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host.h"

namespace saturate {
namespace {

TEST(RunStartTest, SaysWhoWhereAndWhen) {
    std::int64_t before_ns = now_ns(), before_wall_ns = wall_ns();
    RunInfo info = started_run("monitor", {"saturate", "monitor"}, "1.2.3");
    EXPECT_EQ(info.kind, "monitor");
    EXPECT_EQ(info.command, (std::vector<std::string>{"saturate", "monitor"}));
    EXPECT_EQ(info.version, "1.2.3");
    EXPECT_EQ(info.host, host_name());
    EXPECT_EQ(info.pid, ::getpid());
    EXPECT_GE(info.started_ns, before_ns);
    EXPECT_LE(info.started_ns, now_ns());
    EXPECT_GE(info.started_wall_ns, before_wall_ns);
}

}  // namespace
}  // namespace saturate
