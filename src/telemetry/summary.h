// SPDX-License-Identifier: Apache-2.0
// The result of watching GPUs and host: figures from the samples, summed up in bounded memory, and
// a verdict by thresholds. summary_text.h turns it into text.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "telemetry/sample.h"
#include "telemetry/thresholds.h"

namespace saturate {

enum class VerdictLevel { good, fair, low, unknown };
[[nodiscard]] std::string_view verdict_name(
    VerdictLevel level);  // "good", "fair", "low", "unknown"

// The reasons for a verdict; each has a sentence in summary_text.cpp.
enum class VerdictReason {
    no_utilisation,  // the utilisation of the GPU is unknown
    mig,             // split into MIG instances, which report no utilisation
    lost,            // the GPU was lost
    low_utilisation,
    fluctuates,
    busy_but_idle,  // kernels are running but do little, such as a spinning wait
    power_capped,
    hot,
    thermal,  // heat limits the clocks
    cpu_full,
};
[[nodiscard]] std::string_view verdict_reason_name(VerdictReason reason);

struct ThrottleShare {
    std::string reason;  // "power_cap"
    double seconds = 0;
};

struct GpuSummary {
    GpuIdentity gpu;
    std::optional<std::string> fault;  // the last one, if the GPU is lost
    std::int64_t ticks = 0;            // successful readings
    // Utilisation: from the driver's own samples if there are any (from_ring), else from the ticks.
    bool from_ring = false;
    std::int64_t utilisation_n = 0;
    std::optional<double> utilisation_mean, utilisation_deviation, utilisation_p5, utilisation_p95;
    std::optional<double> memory_mean_bytes, memory_peak_bytes, memory_total_bytes;
    std::optional<double> power_mean_watts, power_peak_watts, power_limit_watts;
    std::optional<double> energy_joules;
    bool energy_is_estimate = false;  // integrated power, if there is no counter
    std::optional<double> temperature_peak_celsius, memory_temperature_peak_celsius;
    std::optional<double> clock_mean_mhz, clock_max_mhz;
    std::vector<ThrottleShare> throttle;  // reasons with time; empty if known: none
    bool throttle_known = false;
    bool throttle_is_estimate = false;  // from the reasons at the ticks
    // The activity of the GPU while "busy".
    std::optional<double> sm_active_mean, tensor_active_mean, dram_active_mean;
    std::optional<double> activity_estimate;  // from power, if SM activity is unknown
    std::optional<double> pcie_tx_bytes_per_second, pcie_rx_bytes_per_second;
    VerdictLevel level = VerdictLevel::unknown;
    std::vector<VerdictReason> reasons;
};

struct HostSummary {
    std::optional<double> cpu_mean, cpu_peak, io_wait_mean;
    std::optional<double> tree_cpu_mean;  // of one core
    std::optional<double> main_thread_mean;
    std::optional<int> loader_workers;
    std::optional<std::uint64_t> read_bytes;
    std::optional<std::uint64_t> memory_least_available_bytes;
    bool tree_ended = false;
};

struct OwnCost {
    std::optional<double> cpu_percent;  // of one core
    std::optional<std::uint64_t> memory_bytes;
    double driver_calls_per_second = 0;
    std::uint64_t ticks = 0;
    std::uint64_t lost_ticks = 0;
};

struct Summary {
    double seconds = 0;
    std::vector<GpuSummary> gpus;
    std::string devices_absent_because;
    HostSummary host;
    OwnCost own;
    VerdictLevel level = VerdictLevel::unknown;  // the worst known level of all GPUs
    std::vector<VerdictReason> reasons;          // of all GPUs, each once
    Thresholds thresholds;
};

// Takes every tick and returns the summary at any time.
class Summarizer {
  public:
    explicit Summarizer(const Thresholds& thresholds);
    ~Summarizer();
    // `readings` are those of this tick, without kept values, one per GPU of the snapshot.
    void add(const Snapshot& snapshot, const std::vector<DeviceSample>& readings);
    [[nodiscard]] Summary summary() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

// Returns the object that monitor prints as its last line and that a run record keeps.
[[nodiscard]] Json summary_object(const Summary& summary);

}  // namespace saturate
