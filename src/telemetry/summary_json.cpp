// SPDX-License-Identifier: Apache-2.0
#include "telemetry/summary.h"
#include "telemetry/summary_text.h"

namespace saturate {

namespace {

Json gpu_object(const GpuSummary& gpu, double seconds) {
    Json throttle;
    if (gpu.throttle_known) throttle = Json::object();
    for (const ThrottleShare& share : gpu.throttle)
        throttle.set(share.reason + "_seconds", share.seconds);
    std::optional<double> share_of_limit;
    if (gpu.power_mean_watts && gpu.power_limit_watts && *gpu.power_limit_watts > 0) {
        share_of_limit = 100 * *gpu.power_mean_watts / *gpu.power_limit_watts;
    }
    Json reasons = Json::array();
    for (VerdictReason reason : gpu.reasons) reasons.add(verdict_reason_name(reason));
    return Json::object({
        {"gpu", gpu.gpu.index},
        {"name", gpu.gpu.name},
        {"uuid", gpu.gpu.uuid},
        {"mig", gpu.gpu.mig},
        {"fault", gpu.fault},
        {"ticks", gpu.ticks},
        {"seconds", seconds},
        {"utilization_percent",
         Json::object({{"mean", gpu.utilisation_mean},
                       {"deviation", gpu.utilisation_deviation},
                       {"p5", gpu.utilisation_p5},
                       {"p95", gpu.utilisation_p95},
                       {"n", gpu.utilisation_n},
                       {"source", gpu.from_ring ? "driver samples" : "ticks"}})},
        {"memory_bytes", Json::object({{"mean", gpu.memory_mean_bytes},
                                       {"peak", gpu.memory_peak_bytes},
                                       {"total", gpu.memory_total_bytes}})},
        {"power_watts", Json::object({{"mean", gpu.power_mean_watts},
                                      {"peak", gpu.power_peak_watts},
                                      {"limit", gpu.power_limit_watts},
                                      {"mean_percent_of_limit", share_of_limit}})},
        {"energy_joules", gpu.energy_joules},
        {"energy_is_estimate", gpu.energy_is_estimate},
        {"temperature_peak_celsius", gpu.temperature_peak_celsius},
        {"memory_temperature_peak_celsius", gpu.memory_temperature_peak_celsius},
        {"clock_sm_mean_mhz", gpu.clock_mean_mhz},
        {"clock_sm_max_mhz", gpu.clock_max_mhz},
        {"throttle", throttle},
        {"throttle_is_estimate", gpu.throttle_is_estimate},
        {"sm_active_percent", gpu.sm_active_mean},
        {"tensor_active_percent", gpu.tensor_active_mean},
        {"dram_active_percent", gpu.dram_active_mean},
        {"activity_estimate_percent", gpu.activity_estimate},
        {"pcie_tx_bytes_per_second", gpu.pcie_tx_bytes_per_second},
        {"pcie_rx_bytes_per_second", gpu.pcie_rx_bytes_per_second},
        {"verdict", verdict_name(gpu.level)},
        {"reasons", reasons},
    });
}

}  // namespace

Json summary_object(const Summary& summary) {
    Json gpus = Json::array();
    for (const GpuSummary& gpu : summary.gpus) gpus.add(gpu_object(gpu, summary.seconds));
    Json reasons = Json::array();
    for (VerdictReason reason : summary.reasons) reasons.add(verdict_reason_name(reason));
    const HostSummary& host = summary.host;
    std::optional<std::string> absent;
    if (!summary.devices_absent_because.empty()) absent = summary.devices_absent_because;
    return Json::object({
        {"seconds", summary.seconds},
        {"verdict", verdict_name(summary.level)},
        {"reasons", reasons},
        {"text", Json::array_of(verdict_lines(summary))},
        {"gpus", gpus},
        {"gpus_absent_because", absent},
        {"host", Json::object({{"cpu_mean_percent", host.cpu_mean},
                               {"cpu_peak_percent", host.cpu_peak},
                               {"io_wait_mean_percent", host.io_wait_mean},
                               {"memory_least_available_bytes", host.memory_least_available_bytes},
                               {"tree_cpu_mean_percent", host.tree_cpu_mean},
                               {"main_thread_mean_percent", host.main_thread_mean},
                               {"loader_workers", host.loader_workers},
                               {"read_bytes", host.read_bytes},
                               {"tree_ended", host.tree_ended}})},
        {"own_cost", Json::object({{"cpu_percent", summary.own.cpu_percent},
                                   {"memory_bytes", summary.own.memory_bytes},
                                   {"driver_calls_per_second", summary.own.driver_calls_per_second},
                                   {"ticks", summary.own.ticks},
                                   {"lost_ticks", summary.own.lost_ticks}})},
        {"thresholds",
         Json::object({{"good_percent", summary.thresholds.good_percent},
                       {"low_percent", summary.thresholds.low_percent},
                       {"fluctuation_points", summary.thresholds.fluctuation_points},
                       {"temperature_celsius", summary.thresholds.temperature_celsius},
                       {"cpu_percent", summary.thresholds.cpu_percent}})},
    });
}

}  // namespace saturate
