// SPDX-License-Identifier: Apache-2.0
// monitor --prometheus from outside: a scrape while it runs, and an address that cannot be had.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/replayed.h"

namespace saturate {
namespace {

using testing::HasSubstr;

// Starts it on a port that the system chooses, asks until the first tick is published, ends it.
const char* kScrape = R"(
"$1" monitor --json --interval 0.1 --prometheus=127.0.0.1:0 >/dev/null 2>"$2" &
pid=$!
while kill -0 $pid; do
    port=$(sed -n 's#.*http://127.0.0.1:\([0-9]*\)/metrics#\1#p' "$2")
    if [ -n "$port" ] && exec 3<>/dev/tcp/127.0.0.1/$port; then
        printf 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
        answer=$(cat <&3)
        case $answer in *"200 OK"*) break ;; esac
    fi
    read -t 0.05 <> <(:)
done
printf '%s' "$answer"
kill $pid
wait $pid
)";

TEST(MonitorPrometheusTest, AScrapeSeesTheReplayedGpus) {
    TemporaryFolder folder;
    Ran ran = run({"bash", "-c", kScrape, "bash", SATURATE_BINARY, folder.path() / "err"},
                  {.environment = replay_environment({.scenario = "eight_gpus", .clock = "real:0"},
                                                     SATURATE_NVML_REPLAY)});
    EXPECT_EQ(ran.status, 130) << "ended by a signal, with its summary: " << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("Content-Type: text/plain; version=0.0.4"));
    EXPECT_THAT(ran.out,
                HasSubstr("saturate_gpu_utilization_ratio{gpu=\"0\",uuid=\"GPU-11111111-2222-3333-"
                          "4444-000000000000\"} 0.96\n"));
    EXPECT_THAT(ran.out,
                HasSubstr("saturate_gpu_power_watts{gpu=\"7\",uuid=\"GPU-11111111-2222-3333-"
                          "4444-000000000007\"} 617\n"));
}

TEST(MonitorPrometheusTest, AnAddressThatIsNoneIsTheUsersMistake) {
    Ran ran = run({SATURATE_BINARY, "monitor", "--json", "--duration", "0.1", "--prometheus=here"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: --prometheus is \"here\"\n"
              "  expected: PORT, ADDRESS or ADDRESS:PORT, such as 9838 or 0.0.0.0:9838\n");
}

}  // namespace
}  // namespace saturate
