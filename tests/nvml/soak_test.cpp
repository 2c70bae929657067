// SPDX-License-Identifier: Apache-2.0
// 36 seconds of watching eight GPUs at 100 Hz through the product's own reader and sampler: nothing
// may be lost, drift or grow. On a busy machine a tick is lost when no core is free for longer than
// an interval; then the kernel's own account of that waiting must explain it. Labelled slow.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "cuda/nvml.h"
#include "telemetry/sampler.h"
#include "telemetry/summary.h"

namespace saturate {
namespace {

constexpr int kTicks = 3600;
constexpr double kInterval = 0.01;

std::uint64_t resident_bytes() {
    std::uint64_t total = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> total >> resident;
    return resident * 4096;
}

// How long this thread was ready to run but had no core. 0 where the kernel does not say.
std::int64_t waited_for_a_core_ns() {
    std::int64_t ran = 0, waited = 0;
    std::ifstream("/proc/thread-self/schedstat") >> ran >> waited;
    return waited;
}

TEST(MonitorSoakTest, ManyTicksLoseNothingAndGrowNothing) {
    std::string folder = SATURATE_NVML_REPLAY;
    ::setenv("SATURATE_NVML_RECORDING", (folder + "/scenarios/eight_gpus.jsonl").c_str(), 1);
    // Loaded by path first, so that the product's dlopen of the name finds it.
    void* library = ::dlopen((folder + "/new/libnvidia-ml.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << ::dlerror();

    DeviceOpening nvml = open_nvml({.wake = true});
    ASSERT_TRUE(nvml.reader) << nvml.absent_because;
    HostSampler host({});
    NullRecorder nothing;
    Sampler sampler({.interval_seconds = kInterval}, nvml.reader.get(), &host, "", nothing);
    Summarizer summarizer({});

    std::int64_t waited = waited_for_a_core_ns();
    std::int64_t start = now_ns(), due = start;
    Deadlines deadlines(start, kInterval);
    std::uint64_t resident_early = 0;
    for (int i = 0; i < kTicks; ++i) {
        if (i > 0) due = deadlines.next(now_ns());
        std::this_thread::sleep_until(Clock::time_point(std::chrono::nanoseconds(due)));
        sampler.tick(now_ns(), wall_ns());
        summarizer.add(sampler.snapshot(), sampler.readings());
        if (i == kTicks / 6) resident_early = resident_bytes();
    }
    waited = waited_for_a_core_ns() - waited;
    double seconds = static_cast<double>(due - start) / 1e9;
    std::uint64_t resident_late = resident_bytes();
    Summary summary = summarizer.summary();
    RecordProperty("seconds", std::to_string(seconds));
    RecordProperty("resident_early_bytes", std::to_string(resident_early));
    RecordProperty("resident_late_bytes", std::to_string(resident_late));
    std::printf(
        "ticks %llu, lost %llu, without a core %.3f s, %.4f s, resident %llu then %llu bytes, %.0f "
        "calls/s\n",
        static_cast<unsigned long long>(summary.own.ticks),
        static_cast<unsigned long long>(deadlines.lost()), static_cast<double>(waited) / 1e9,
        seconds, static_cast<unsigned long long>(resident_early),
        static_cast<unsigned long long>(resident_late), summary.own.driver_calls_per_second);

    EXPECT_EQ(summary.own.ticks, static_cast<std::uint64_t>(kTicks));
    EXPECT_LE(static_cast<double>(deadlines.lost()) * kInterval, static_cast<double>(waited) / 1e9)
        << "more was lost than waiting for a core explains";
    EXPECT_NEAR(seconds, (kTicks - 1 + static_cast<double>(deadlines.lost())) * kInterval, 1e-6)
        << "the last tick is due where it was at the start";
    constexpr std::uint64_t kSlack = 256 << 10;  // an allocator's page or two, not growth by tick
    EXPECT_LE(resident_late, resident_early + kSlack);
    EXPECT_EQ(summary.gpus.size(), 8u);
    nvml.reader.reset();
    ::dlclose(library);
}

}  // namespace
}  // namespace saturate
