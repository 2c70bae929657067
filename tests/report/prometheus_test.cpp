// SPDX-License-Identifier: Apache-2.0
#include "report/prometheus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "support/run.h"

namespace saturate {
namespace {

Snapshot example() {
    Snapshot out;
    out.tick = 41;
    out.driver_version = "580.65.06";
    out.gpus = {{.index = 0,
                 .name = "NVIDIA H100 \"80GB\"",
                 .uuid = "GPU-a",
                 .pci_bus_id = "00000000:18:00.0"},
                {.index = 3, .name = "back\\slash\nline", .uuid = "GPU-b"}};
    DeviceSample first{.gpu = 0};
    first.utilization_percent = 96;
    first.memory_used_bytes = 64424509440;
    first.power_watts = 610.5;
    first.clock_sm_mhz = 1755;
    first.throttle.power_cap_ns = 1500000000;
    DeviceSample lost{.gpu = 3};
    lost.fault = "GPU is lost";
    out.devices = {first, lost};
    ProcessRow row{.gpu = 0, .process = {.pid = 4242, .memory_bytes = 1024}};
    row.user = "ada";
    out.processes = {row};
    out.host.cpu_percent = 25;
    return out;
}

TEST(PrometheusTest, WritesWhatIsKnownAndNothingElse) {
    EXPECT_EQ(prometheus_text(example()),
              R"(# HELP saturate_gpu_info Always 1; who the GPU is.
# TYPE saturate_gpu_info gauge
saturate_gpu_info{gpu="0",uuid="GPU-a",name="NVIDIA H100 \"80GB\"",pci_bus_id="00000000:18:00.0",driver="580.65.06"} 1
saturate_gpu_info{gpu="3",uuid="GPU-b",name="back\\slash\nline",pci_bus_id="",driver="580.65.06"} 1
# HELP saturate_gpu_up 1 while the GPU answers, 0 when it is lost.
# TYPE saturate_gpu_up gauge
saturate_gpu_up{gpu="0",uuid="GPU-a"} 1
saturate_gpu_up{gpu="3",uuid="GPU-b"} 0
# HELP saturate_gpu_utilization_ratio Share of time in which any kernel was resident.
# TYPE saturate_gpu_utilization_ratio gauge
saturate_gpu_utilization_ratio{gpu="0",uuid="GPU-a"} 0.96
# HELP saturate_gpu_memory_used_bytes Memory in use, without what the driver reserves.
# TYPE saturate_gpu_memory_used_bytes gauge
saturate_gpu_memory_used_bytes{gpu="0",uuid="GPU-a"} 64424509440
# HELP saturate_gpu_power_watts Power draw.
# TYPE saturate_gpu_power_watts gauge
saturate_gpu_power_watts{gpu="0",uuid="GPU-a"} 610.5
# HELP saturate_gpu_sm_clock_hertz Clock of the multiprocessors.
# TYPE saturate_gpu_sm_clock_hertz gauge
saturate_gpu_sm_clock_hertz{gpu="0",uuid="GPU-a"} 1755000000
# HELP saturate_gpu_throttle_seconds_total Time with clocks held down, by reason, since the driver was loaded.
# TYPE saturate_gpu_throttle_seconds_total counter
saturate_gpu_throttle_seconds_total{gpu="0",uuid="GPU-a",reason="power_cap"} 1.5
# HELP saturate_gpu_process_memory_bytes Memory of a process on a GPU.
# TYPE saturate_gpu_process_memory_bytes gauge
saturate_gpu_process_memory_bytes{gpu="0",pid="4242",user="ada",slurm_job=""} 1024
# HELP saturate_host_cpu_ratio Busy share of all cores.
# TYPE saturate_host_cpu_ratio gauge
saturate_host_cpu_ratio 0.25
# HELP saturate_monitor_ticks_total Readings taken.
# TYPE saturate_monitor_ticks_total counter
saturate_monitor_ticks_total 42
# HELP saturate_monitor_late_ticks_total Readings that came too late.
# TYPE saturate_monitor_late_ticks_total counter
saturate_monitor_late_ticks_total 0
# HELP saturate_monitor_driver_calls_total Calls into the GPU's driver.
# TYPE saturate_monitor_driver_calls_total counter
saturate_monitor_driver_calls_total 0
)");
}

TEST(PrometheusTest, NamesFollowTheConventions) {
    static const std::regex kName("saturate_(gpu|host|job|monitor)_[a-z_]+");
    static const std::set<std::string> kUnits{"ratio",   "bytes", "watts",   "joules",
                                              "celsius", "hertz", "seconds", "cores",
                                              "total",   "info",  "up",      "workers"};
    std::set<std::string> seen;
    for (const std::string& name : prometheus_names()) {
        EXPECT_TRUE(std::regex_match(name, kName)) << name;
        EXPECT_TRUE(seen.insert(name).second) << name << " is there twice";
        EXPECT_TRUE(kUnits.count(name.substr(name.rfind('_') + 1))) << name << " ends in no unit";
    }
}

TEST(PrometheusTest, TheDashboardUsesOnlyMetricsThatExist) {
    std::string path = SATURATE_SOURCE_DIR "/docs/grafana-dashboard.json";
    std::string text = read_file(path, 1 << 20, "the dashboard");
    Json dashboard = Json::parse(text, path);
    EXPECT_GE(dashboard["panels"].items().size(), 8u);
    std::vector<std::string> names = prometheus_names();
    static const std::regex kName("saturate_[a-z_]+");
    std::set<std::string> used;
    for (const Json& panel : dashboard["panels"].items()) {
        EXPECT_TRUE(panel["title"].string()) << panel.line();
        for (const Json& target : panel["targets"].items()) {
            std::string query = target["expr"].string().value_or("");
            EXPECT_NE(query, "") << panel.line();
            for (std::sregex_iterator at(query.begin(), query.end(), kName), end; at != end; ++at)
                used.insert(at->str());
        }
    }
    for (const std::string& name : used)
        EXPECT_NE(std::ranges::find(names, name), names.end()) << name;
    EXPECT_GE(used.size(), 10u);
}

TEST(PrometheusTest, TheDocsNameEveryMetric) {
    std::string text = read_file(SATURATE_SOURCE_DIR "/docs/prometheus.md", 1 << 20, "the docs");
    for (const std::string& name : prometheus_names())
        EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << name;
}

// Read by Prometheus' own parser.
TEST(PrometheusTest, TheReferenceParserReadsTheSameValues) {
    Ran found = run({SATURATE_SOURCE_DIR "/tests/support/pypi", "prometheus_client"});
    if (found.status != 0)
        GTEST_SKIP() << "prometheus_client cannot be had from PyPI here: " << found.err;
    TemporaryFolder folder;
    auto program =
        folder.file("read.py",
                    "import sys\n"
                    "from prometheus_client.parser import text_string_to_metric_families as parse\n"
                    "for family in parse(sys.stdin.read()):\n"
                    "    for s in family.samples:\n"
                    "        print(family.type, s.name, sorted(s.labels.items()), s.value)\n");
    Ran ran =
        run({"python3", program}, {.environment = {{"PYTHONPATH", std::string(trim(found.out))}},
                                   .input = prometheus_text(example())});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_NE(ran.out.find(
                  "gauge saturate_gpu_utilization_ratio [('gpu', '0'), ('uuid', 'GPU-a')] 0.96\n"),
              std::string::npos)
        << ran.out;
    EXPECT_NE(ran.out.find("('name', 'back\\\\slash\\nline')"), std::string::npos) << ran.out;
    EXPECT_NE(
        ran.out.find(
            "counter saturate_gpu_throttle_seconds_total [('gpu', '0'), ('reason', 'power_cap'), "
            "('uuid', 'GPU-a')] 1.5\n"),
        std::string::npos)
        << ran.out;
}

}  // namespace
}  // namespace saturate
