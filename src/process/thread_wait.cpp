// SPDX-License-Identifier: Apache-2.0
#include "process/thread_wait.h"

#include <ctime>

#include "base/clock.h"
#include "telemetry/host_sampler.h"

namespace saturate {

namespace {

constexpr double kMuchOfACore = 0.5;
// Spins for about ten microseconds. window_cnn on two cores, samples/s, with one busy core and
// builds running: 300,000 spins (default) 38, 10,000 292, 1,000 775, 0 1,283. Ahead of all other
// work: 2,870, 2,640, 2,440, 2,070.
constexpr const char* kFewSpins = "1000";

}  // namespace

HostSample resting_machine(std::int64_t ns) {
    HostSampler sampler({});
    (void)sampler.sample(now_ns());
    timespec wait{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    ::nanosleep(&wait, nullptr);
    return sampler.sample(now_ns());
}

std::vector<std::pair<std::string, std::string>> thread_wait(const Environment& environment,
                                                             const HostSample& resting) {
    for (const char* name : {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}) {
        if (environment(name)) return {};
    }
    if (rank_place(environment) || !resting.cpu_percent || !resting.cores) return {};
    double used = *resting.cpu_percent / 100 * *resting.cores;
    if (used < kMuchOfACore) return {};
    return {{"GOMP_SPINCOUNT", kFewSpins}};
}

}  // namespace saturate
