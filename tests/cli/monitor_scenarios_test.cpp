// SPDX-License-Identifier: Apache-2.0
// monitor on every scenario of the stand-in driver: values, verdict, and that it keeps NVML's
// rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/replayed.h"

namespace saturate {
namespace {

using testing::Contains;
using testing::Not;

struct Watched {
    Json start, last, summary;  // `last` is the last tick
    std::vector<Json> ticks;
    std::map<std::string, std::uint64_t> calls;
    [[nodiscard]] const Json& gpu(std::size_t i = 0) const { return summary["gpus"].items().at(i); }
    [[nodiscard]] std::vector<std::string> reasons(std::size_t i = 0) const {
        std::vector<std::string> out;
        for (const Json& reason : gpu(i)["reasons"].items()) out.push_back(*reason.string());
        return out;
    }
    [[nodiscard]] std::vector<std::int64_t> pids() const {
        std::vector<std::int64_t> out;
        for (const Json& row : last["processes"].items())
            out.push_back(row["pid"].integer().value_or(-1));
        return out;
    }
};

// 25 ticks: one more than the readings that are taken every two seconds need to come round again.
Watched watch(const std::string& scenario, const std::string& variant = "new") {
    TemporaryFolder folder;
    Replayed replayed{.scenario = scenario, .variant = variant};
    auto environment = replay_environment(replayed, SATURATE_NVML_REPLAY);
    environment["SATURATE_NVML_CALLS"] = folder.path() / "calls";
    Ran ran = run({SATURATE_BINARY, "monitor", "--json", "--interval", "0.1", "--duration", "2.5"},
                  {.environment = environment});
    EXPECT_TRUE(ran.status == 0 || ran.status == 1) << ran.status << ran.err;
    Watched out;
    for (const Json& line : json_lines(ran.out)) {
        if (line["start"].is_object()) out.start = line["start"];
        if (line["summary"].is_object()) out.summary = line["summary"];
        if (line["gpus"].is_array()) out.ticks.push_back(line);
    }
    EXPECT_TRUE(out.summary.is_object()) << ran.out << ran.err;
    EXPECT_FALSE(out.ticks.empty()) << ran.err;
    if (!out.ticks.empty()) out.last = out.ticks.back();
    out.calls = replay_calls(folder.path() / "calls");
    for (const auto& [name, count] : out.calls)
        EXPECT_NE(name[0], '!') << name << " breaks NVML's rules";
    return out;
}

// A value of the summary, which must be known.
double value(const Json& object, std::initializer_list<const char*> path) {
    const Json* at = &object;
    for (const char* key : path) at = &(*at)[key];
    EXPECT_TRUE(at->number()) << object.line();
    return at->number().value_or(-1);
}

TEST(MonitorScenarioTest, BusyIsGood) {
    Watched w = watch("busy");
    EXPECT_EQ(w.start["driver_version"].string(), "580.65.06");
    EXPECT_EQ(w.gpu()["name"].string(), "NVIDIA H100 80GB HBM3");
    EXPECT_NEAR(value(w.gpu(), {"utilization_percent", "mean"}), 97, 0.5);
    EXPECT_EQ(value(w.gpu(), {"memory_bytes", "peak"}), 60.0 * (1ull << 30));
    EXPECT_EQ(value(w.gpu(), {"memory_bytes", "total"}), 80.0 * (1ull << 30));
    EXPECT_EQ(value(w.gpu(), {"power_watts", "mean"}), 610);
    EXPECT_EQ(value(w.gpu(), {"power_watts", "limit"}), 700);
    EXPECT_EQ(value(w.gpu(), {"temperature_peak_celsius"}), 62);
    EXPECT_EQ(value(w.gpu(), {"memory_temperature_peak_celsius"}), 71);
    EXPECT_NEAR(value(w.gpu(), {"sm_active_percent"}), 97, 1.5);
    EXPECT_EQ(w.gpu()["verdict"].string(), "good");
    EXPECT_THAT(w.pids(), testing::ElementsAre(4242));
}

TEST(MonitorScenarioTest, IdleIsLow) {
    Watched w = watch("idle");
    EXPECT_EQ(value(w.gpu(), {"utilization_percent", "mean"}), 0) << "known to be 0";
    EXPECT_EQ(w.gpu()["verdict"].string(), "low");
    EXPECT_THAT(w.reasons(), Contains("low_utilisation"));
    EXPECT_TRUE(w.pids().empty());
}

TEST(MonitorScenarioTest, AStarvedGpuIsLowAndFluctuates) {
    Watched w = watch("starved");
    EXPECT_NEAR(value(w.gpu(), {"utilization_percent", "mean"}), 25, 6);
    EXPECT_GT(value(w.gpu(), {"utilization_percent", "deviation"}), 35);
    EXPECT_EQ(w.gpu()["verdict"].string(), "low");
    EXPECT_THAT(w.reasons(), Contains("low_utilisation"));
    EXPECT_THAT(w.reasons(), Contains("fluctuates"));
}

TEST(MonitorScenarioTest, ASpinningCollectiveIsNotTakenForWork) {
    Watched w = watch("nccl_spin");
    EXPECT_EQ(value(w.gpu(), {"utilization_percent", "mean"}), 100);
    EXPECT_NEAR(value(w.gpu(), {"sm_active_percent"}), 5, 1e-9);
    EXPECT_EQ(w.gpu()["verdict"].string(), "low");
    EXPECT_THAT(w.reasons(), Contains("busy_but_idle"));
}

TEST(MonitorScenarioTest, APowerCapIsTimed) {
    Watched w = watch("power_cap");
    double capped = value(w.gpu(), {"throttle", "power_cap_seconds"});
    // Two of three steps, of 0.1 s each, as far as the steps came.
    EXPECT_NEAR(capped / value(w.summary, {"seconds"}), 0.67, 0.15);
    EXPECT_THAT(w.reasons(), Contains("power_capped"));
    EXPECT_THAT(w.reasons(), Not(Contains("thermal")));
}

TEST(MonitorScenarioTest, HeatIsSeenAsTemperatureAndAsTime) {
    Watched w = watch("thermal");
    EXPECT_GT(value(w.gpu(), {"temperature_peak_celsius"}), 85);
    EXPECT_THAT(w.reasons(), Contains("hot"));
    EXPECT_GT(value(w.gpu(), {"throttle", "software_thermal_seconds"}), 0);
}

TEST(MonitorScenarioTest, ALostGpuIsSaidAndTheOtherGoesOn) {
    Watched w = watch("gpu_lost");
    EXPECT_EQ(w.gpu(1)["fault"].string(), "GPU is lost");
    EXPECT_THAT(w.reasons(1), Contains("lost"));
    EXPECT_TRUE(w.gpu(0)["fault"].is_null());
    EXPECT_EQ(w.gpu(0)["verdict"].string(), "good");
    EXPECT_GT(value(w.gpu(0), {"ticks"}), value(w.gpu(1), {"ticks"}));
    EXPECT_TRUE(w.ticks.front()["gpus"].items().at(1)["utilization_percent"].number());
    EXPECT_TRUE(w.last["gpus"].items().at(1)["utilization_percent"].is_null())
        << "unknown, not the last value";
}

TEST(MonitorScenarioTest, AProcessListThatGrowsIsReadWhole) {
    EXPECT_THAT(watch("processes_grow").pids(),
                testing::UnorderedElementsAre(4242, 900000, 900001));
}

TEST(MonitorScenarioTest, BothStridesOfProcessEntriesAreRead) {
    for (const char* scenario : {"stride_24", "stride_32"}) {
        Watched w = watch(scenario);
        EXPECT_THAT(w.pids(), testing::ElementsAre(4242, 4343, 4444)) << scenario;
        for (const Json& row : w.last["processes"].items())
            EXPECT_EQ(row["gpu_memory_bytes"].integer(), 20ll << 30) << scenario;
    }
}

TEST(MonitorScenarioTest, WithoutTheDriversSamplesTheTicksCount) {
    Watched w = watch("no_samples");
    EXPECT_EQ(value(w.gpu(), {"utilization_percent", "mean"}), 64);
    EXPECT_EQ(w.gpu()["utilization_percent"]["source"].string(), "ticks");
    EXPECT_EQ(w.gpu()["verdict"].string(), "low");
}

TEST(MonitorScenarioTest, ACounterThatWrapsKeepsItsRate) {
    Watched w = watch("counter_wrap");
    // 200 MiB/s in, a quarter of it out; the ticks may come late, but never 20 times as fast.
    EXPECT_NEAR(value(w.gpu(), {"pcie_rx_bytes_per_second"}) / (200 << 20), 1, 0.3);
    EXPECT_NEAR(value(w.gpu(), {"pcie_tx_bytes_per_second"}) / (50 << 20), 1, 0.3);
    double before = 0;
    for (const Json& tick : w.ticks) {
        double now = value(tick["gpus"].items().at(0), {"pcie_rx_bytes"});
        EXPECT_GE(now, before);
        before = now;
    }
}

TEST(MonitorScenarioTest, MigHasNoUtilisationAndSaysSo) {
    Watched w = watch("mig");
    EXPECT_TRUE(w.gpu()["utilization_percent"]["mean"].is_null());
    EXPECT_EQ(w.gpu()["mig"].boolean(), true);
    EXPECT_EQ(w.gpu()["verdict"].string(), "unknown");
    EXPECT_THAT(w.reasons(), Contains("mig"));
    EXPECT_EQ(value(w.gpu(), {"memory_bytes", "peak"}), 21.0 * (1ull << 30));
}

TEST(MonitorScenarioTest, UnifiedMemoryIsUnknownAndTheRestIsThere) {
    Watched w = watch("unified");
    EXPECT_TRUE(w.gpu()["memory_bytes"]["peak"].is_null());
    EXPECT_TRUE(w.gpu()["power_watts"]["limit"].is_null());
    EXPECT_EQ(value(w.gpu(), {"utilization_percent", "mean"}), 91);
    EXPECT_EQ(value(w.gpu(), {"power_watts", "mean"}), 88);
    EXPECT_EQ(w.gpu()["verdict"].string(), "good");
}

TEST(MonitorScenarioTest, SlowCallsChangeNoValue) {
    Watched w = watch("slow_calls");
    EXPECT_NEAR(value(w.gpu(), {"utilization_percent", "mean"}), 97, 0.5);
    EXPECT_EQ(w.gpu()["verdict"].string(), "good");
}

TEST(MonitorScenarioTest, AnOldDriverLosesSingleValuesOnly) {
    Watched w = watch("old_driver", "old");
    EXPECT_EQ(w.gpu()["name"].string(), "Tesla V100-SXM2-16GB");
    EXPECT_EQ(value(w.gpu(), {"utilization_percent", "mean"}), 88);
    EXPECT_EQ(value(w.gpu(), {"power_watts", "mean"}), 241);
    EXPECT_EQ(value(w.gpu(), {"power_watts", "limit"}), 300);
    EXPECT_EQ(value(w.gpu(), {"temperature_peak_celsius"}), 62);
    EXPECT_EQ(value(w.gpu(), {"memory_bytes", "peak"}), 12.0 * (1ull << 30) + (300 << 20));
    EXPECT_TRUE(w.gpu()["sm_active_percent"].is_null());
    EXPECT_TRUE(w.gpu()["memory_temperature_peak_celsius"].is_null());
    EXPECT_EQ(w.gpu()["verdict"].string(), "good");
    EXPECT_THAT(w.pids(), testing::ElementsAre(4242));
}

TEST(MonitorScenarioTest, EightGpusAreAllThere) {
    Watched w = watch("eight_gpus");
    ASSERT_EQ(w.summary["gpus"].items().size(), 8u);
    for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(value(w.gpu(i), {"power_watts", "mean"}), 610 + static_cast<double>(i));
        EXPECT_EQ(w.gpu(i)["verdict"].string(), "good");
    }
    EXPECT_EQ(w.pids().size(), 8u);
}

TEST(MonitorScenarioTest, DoctorNamesTheGpuOfEveryScenario) {
    for (const auto& entry : std::filesystem::directory_iterator(
             std::filesystem::path(SATURATE_NVML_REPLAY) / "scenarios")) {
        if (entry.path().extension() != ".jsonl") continue;
        std::string scenario = entry.path().stem();
        Ran ran =
            run({SATURATE_BINARY, "doctor", "--json"},
                {.environment = replay_environment({.scenario = scenario}, SATURATE_NVML_REPLAY)});
        EXPECT_TRUE(ran.status == 0 || ran.status == 1) << scenario << ran.err;
        Json found = Json::parse(ran.out, "stdout");
        ASSERT_FALSE(found["gpus"].items().empty()) << scenario << ran.out;
        std::string name = found["gpus"].items()[0]["name"].string().value_or("");
        bool known = name.find("H100") != std::string::npos ||
                     name.find("V100") != std::string::npos ||
                     name.find("GB10") != std::string::npos;
        EXPECT_TRUE(known) << scenario << name;
    }
}

}  // namespace
}  // namespace saturate
