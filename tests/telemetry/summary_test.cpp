// SPDX-License-Identifier: Apache-2.0
#include "telemetry/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "telemetry/summary_text.h"

namespace saturate {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kSecond = 1'000'000'000;

// Feeds ticks of one GPU, a second apart.
class Feeder {
  public:
    explicit Feeder(const Thresholds& thresholds = {}) : summarizer(thresholds) {
        snapshot.gpus = {{.index = 0, .name = "Fake"}};
        snapshot.devices = {{.gpu = 0}};
    }
    void tick(DeviceSample sample) {
        snapshot.time_ns = sample.time_ns = next_ns_;
        next_ns_ += kSecond;
        ++snapshot.tick;
        summarizer.add(snapshot, {sample});
    }
    GpuSummary gpu() { return summarizer.summary().gpus.at(0); }
    Summarizer summarizer;
    Snapshot snapshot;

  private:
    std::int64_t next_ns_ = 0;
};

DeviceSample busy(double percent) { return {.utilization_percent = percent}; }

TEST(SummaryTest, SteadyAndHighIsGood) {
    Feeder feeder;
    for (int i = 0; i < 20; ++i) feeder.tick(busy(i % 2 ? 90 : 94));
    GpuSummary gpu = feeder.gpu();
    EXPECT_DOUBLE_EQ(*gpu.utilisation_mean, 92);
    EXPECT_DOUBLE_EQ(*gpu.utilisation_deviation, 2);
    EXPECT_EQ(gpu.utilisation_p5, 90);
    EXPECT_EQ(gpu.utilisation_p95, 94);
    EXPECT_EQ(gpu.level, VerdictLevel::good);
    EXPECT_THAT(gpu.reasons, IsEmpty());
}

TEST(SummaryTest, ThresholdsDecideAndCanBeSet) {
    for (auto [percent, level] :
         {std::pair(69.0, VerdictLevel::low), std::pair(70.0, VerdictLevel::fair),
          std::pair(84.9, VerdictLevel::fair), std::pair(85.0, VerdictLevel::good)}) {
        Feeder feeder;
        for (int i = 0; i < 5; ++i) feeder.tick(busy(percent));
        EXPECT_EQ(feeder.gpu().level, level) << percent;
    }
    Feeder strict({.good_percent = 95, .low_percent = 90});
    for (int i = 0; i < 5; ++i) strict.tick(busy(89));
    EXPECT_EQ(strict.gpu().level, VerdictLevel::low);
}

TEST(SummaryTest, ASawtoothFluctuates) {
    Feeder feeder;
    for (int i = 0; i < 20; ++i) feeder.tick(busy(i % 2 ? 100 : 76));
    EXPECT_EQ(feeder.gpu().level, VerdictLevel::fair);
    EXPECT_THAT(feeder.gpu().reasons, ElementsAre(VerdictReason::fluctuates));
}

TEST(SummaryTest, TheDriversOwnSamplesShowWhatTicksMiss) {
    Feeder feeder;
    for (int i = 0; i < 10; ++i) {
        DeviceSample sample = busy(50);  // what a tick reads, however the load jumps
        if (i % 2 == 1) {
            for (int k = 0; k < 12; ++k)
                sample.utilization_ring.push_back({i * 1000 + k, k % 2 ? 100.0 : 0.0});
        }
        feeder.tick(sample);
    }
    GpuSummary gpu = feeder.gpu();
    EXPECT_TRUE(gpu.from_ring);
    EXPECT_EQ(gpu.utilisation_n, 60);
    EXPECT_DOUBLE_EQ(*gpu.utilisation_mean, 50);
    EXPECT_DOUBLE_EQ(*gpu.utilisation_deviation, 50);
}

TEST(SummaryTest, AnIdleGpuGivesNoSamplesAndItsReadingsCount) {
    Feeder feeder;
    DeviceSample at_work = busy(100);
    at_work.utilization_ring = {{1, 100}, {2, 100}};
    feeder.tick(at_work);
    for (int i = 0; i < 9; ++i) feeder.tick(busy(0));
    EXPECT_DOUBLE_EQ(*feeder.gpu().utilisation_mean, 10);
}

TEST(SummaryTest, BusyWithIdleMultiprocessorsIsLow) {
    Feeder feeder;
    for (int i = 0; i < 5; ++i) feeder.tick({.utilization_percent = 100, .sm_active_percent = 5});
    EXPECT_EQ(feeder.gpu().level, VerdictLevel::low);
    EXPECT_THAT(feeder.gpu().reasons, ElementsAre(VerdictReason::busy_but_idle));
}

TEST(SummaryTest, WithoutActivityPowerAboveIdleIsTheEstimate) {
    Feeder feeder;
    feeder.tick({.utilization_percent = 0, .power_watts = 100, .power_limit_watts = 500});
    feeder.tick({.utilization_percent = 100, .power_watts = 300});
    feeder.tick({.utilization_percent = 100, .power_watts = 300});
    EXPECT_DOUBLE_EQ(*feeder.gpu().activity_estimate, 50);
    Feeder spinning;
    for (int i = 0; i < 5; ++i)
        spinning.tick({.utilization_percent = 100, .power_watts = 150, .power_limit_watts = 700});
    EXPECT_LT(*spinning.gpu().activity_estimate, 6);
    EXPECT_THAT(spinning.gpu().reasons, ElementsAre(VerdictReason::busy_but_idle));
}

TEST(SummaryTest, EnergyComesFromTheCounterAndElseFromPower) {
    Feeder counted;
    counted.tick({.power_watts = 999, .energy_joules = 1000});
    counted.tick({.power_watts = 100, .energy_joules = 1090});
    counted.tick({.power_watts = 100});  // the counter was not read at the last tick
    EXPECT_DOUBLE_EQ(*counted.gpu().energy_joules, 190);
    EXPECT_FALSE(counted.gpu().energy_is_estimate);
    Feeder added;
    for (int i = 0; i < 4; ++i) added.tick({.power_watts = 100});
    EXPECT_DOUBLE_EQ(*added.gpu().energy_joules, 300);
    EXPECT_TRUE(added.gpu().energy_is_estimate);
}

TEST(SummaryTest, ThrottledTimeIsTheRiseOfTheCounters) {
    Feeder feeder;
    for (std::uint64_t i = 0; i <= 10; ++i) {
        DeviceSample sample = busy(99);
        sample.throttle = {.power_cap_ns = 5'000'000'000'000 + i * 700'000'000,
                           .hardware_thermal_ns = 3};
        feeder.tick(sample);
    }
    GpuSummary gpu = feeder.gpu();
    EXPECT_TRUE(gpu.throttle_known);
    EXPECT_FALSE(gpu.throttle_is_estimate);
    ASSERT_EQ(gpu.throttle.size(), 1u);
    EXPECT_EQ(gpu.throttle[0].reason, "power_cap");
    EXPECT_DOUBLE_EQ(gpu.throttle[0].seconds, 7);
    EXPECT_THAT(gpu.reasons, ElementsAre(VerdictReason::power_capped));
}

TEST(SummaryTest, WithoutCountersTheReasonsSeenAreTheEstimate) {
    Feeder feeder;
    for (int i = 0; i <= 4; ++i)
        feeder.tick({.utilization_percent = 99, .throttle_reasons = i < 2 ? 0x40u : 0u});
    GpuSummary gpu = feeder.gpu();
    EXPECT_TRUE(gpu.throttle_is_estimate);
    ASSERT_EQ(gpu.throttle.size(), 1u);
    EXPECT_DOUBLE_EQ(gpu.throttle[0].seconds, 2);
    EXPECT_THAT(gpu.reasons, ElementsAre(VerdictReason::thermal));
}

TEST(SummaryTest, HeatIsSaidAboveTheThreshold) {
    Feeder feeder;
    for (double celsius : {84.0, 86.0, 70.0})
        feeder.tick({.utilization_percent = 99, .temperature_celsius = celsius});
    EXPECT_EQ(feeder.gpu().temperature_peak_celsius, 86);
    EXPECT_THAT(feeder.gpu().reasons, ElementsAre(VerdictReason::hot));
}

TEST(SummaryTest, WhatIsUnknownIsNotZero) {
    Feeder feeder;
    feeder.tick({});
    GpuSummary gpu = feeder.gpu();
    EXPECT_EQ(gpu.utilisation_mean, std::nullopt);
    EXPECT_EQ(gpu.power_mean_watts, std::nullopt);
    EXPECT_EQ(gpu.energy_joules, std::nullopt);
    EXPECT_FALSE(gpu.throttle_known);
    EXPECT_EQ(gpu.level, VerdictLevel::unknown);
    EXPECT_THAT(gpu.reasons, ElementsAre(VerdictReason::no_utilisation));
    Json json = summary_object(feeder.summarizer.summary());
    EXPECT_EQ(json["verdict"].string(), "unknown");
    EXPECT_TRUE(json["gpus"].items()[0]["power_watts"]["mean"].is_null());
}

TEST(SummaryTest, ALostGpuKeepsItsNumbersAndIsNotGood) {
    Feeder feeder;
    for (int i = 0; i < 5; ++i) feeder.tick(busy(95));
    feeder.tick({.fault = "GPU is lost"});
    EXPECT_DOUBLE_EQ(*feeder.gpu().utilisation_mean, 95);
    EXPECT_EQ(feeder.gpu().level, VerdictLevel::low);
    EXPECT_THAT(feeder.gpu().reasons, ElementsAre(VerdictReason::lost));
}

TEST(SummaryTest, MigIsSaidPlainly) {
    Feeder feeder;
    feeder.snapshot.gpus[0].mig = true;
    feeder.tick({.memory_used_bytes = 5});
    EXPECT_THAT(feeder.gpu().reasons, ElementsAre(VerdictReason::mig));
}

// Two days at 10 Hz: what is kept does not grow with it.
TEST(SummaryTest, ALongRunStaysExact) {
    Feeder feeder;
    for (int i = 0; i < 1'728'000; ++i) feeder.tick(busy(i % 4 == 0 ? 0 : 100));
    EXPECT_NEAR(*feeder.gpu().utilisation_mean, 75, 1e-9);
    EXPECT_NEAR(*feeder.gpu().utilisation_deviation, 43.301270, 1e-5);
}

Summary low_summary() {
    Feeder feeder;
    for (int i = 0; i <= 10; ++i) {
        DeviceSample sample{.utilization_percent = i % 2 ? 60.0 : 20.0,
                            .memory_total_bytes = 24ull << 30,
                            .memory_used_bytes = 10ull << 30,
                            .power_watts = 200,
                            .power_limit_watts = 450,
                            .energy_joules = 5000 + i * 200.0,
                            .temperature_celsius = 61};
        sample.throttle.power_cap_ns = 0;
        feeder.snapshot.host = {.cpu_percent = 95, .io_wait_percent = 1};
        feeder.tick(sample);
    }
    return feeder.summarizer.summary();
}

TEST(SummaryTextTest, SaysAllOfIt) {
    EXPECT_EQ(
        summary_text(low_summary(), {.run_folder = "RUN"}),
        "Summary of 10.0 s, 11 readings\n"
        "GPU 0 Fake\n"
        "  utilisation  mean 38.2 %, deviation 19.9 points, p5-p95 20..60 % (n=11)\n"
        "  memory       mean 10.0 GiB, peak 10.0 GiB of 24.0 GiB\n"
        "  power        mean 200 W, peak 200 W, limit 450 W: 44 % of it used\n"
        "  energy       2.0 kJ\n"
        "  temperature  peak 61 C\n"
        "  throttled    no\n"
        "  while busy   about 33 % of what the power limit allows (estimate by power above idle)\n"
        "  host         CPU mean 95.0 %, peak 95.0 %, IO wait 1.0 %\n"
        "Verdict: low: the GPU does far less than it could (mean utilisation 38.2 %)\n"
        "  - utilisation is under 70 %: the GPU waits for the host\n"
        "  - utilisation fluctuates by more than 10 points: work arrives in bursts\n"
        "  - the host's CPU is over 90 %: it is the likely bottleneck\n"
        "Next: saturate diagnose RUN (finds the cause)\n"
        "Next: saturate diagnose TRACE (finds the cause in a profiler trace; --how says how to "
        "record one)\n"
        "Next: saturate optimize --config FILE (sets workers, precision and batch for this "
        "machine)\n");
}

TEST(SummaryTextTest, OfManyGpusTheVerdictNamesTheLowest) {
    Summary many{.level = VerdictLevel::good};
    for (int i = 0; i < 8; ++i)
        many.gpus.push_back({.gpu = {.index = i}, .utilisation_mean = i == 3 ? 86.0 : 97.0});
    EXPECT_THAT(verdict_lines(many),
                ElementsAre("good: the GPU is kept busy (mean utilisation 86.0 to 97.0 % on 8 "
                            "GPUs, the lowest on GPU 3)"));
}

TEST(SummaryTextTest, WithoutAGpuItSaysWhyAndWhatToRun) {
    Summarizer summarizer({});
    Snapshot snapshot{.devices_absent_because = "no driver"};
    summarizer.add(snapshot, {});
    EXPECT_EQ(summary_text(summarizer.summary(), {}),
              "Summary of 0.0 s, 1 reading\n"
              "GPU: unknown (no driver)\n"
              "  host         unknown\n"
              "Verdict: unknown: there is no way to tell how busy the GPU is\n"
              "  - no utilisation could be read\n"
              "Next: saturate doctor (shows what this machine has and what is missing)\n");
}

TEST(SummaryTextTest, TheLineOfATickHasDashesForWhatIsUnknown) {
    Snapshot snapshot;
    snapshot.devices = {{.gpu = 0,
                         .utilization_percent = 87,
                         .memory_total_bytes = 12ull << 30,
                         .memory_used_bytes = 9ull << 30,
                         .power_watts = 300,
                         .power_limit_watts = 575,
                         .temperature_celsius = 66,
                         .clock_sm_mhz = 2520,
                         .clock_memory_mhz = 14001},
                        {.gpu = 1},
                        {.gpu = 2, .fault = "GPU is lost"}};
    EXPECT_THAT(tick_lines(snapshot),
                ElementsAre("GPU 0 | 300/575 W | util 87 % | mem 9.0 GiB (75 %) | 66 C | SM 2520 "
                            "MHz | mem 14001 MHz",
                            "GPU 1 | -/- W | util - | mem - | - C | SM - MHz | mem - MHz",
                            "GPU 2 | GPU is lost"));
}

}  // namespace
}  // namespace saturate
