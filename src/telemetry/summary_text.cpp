// SPDX-License-Identifier: Apache-2.0
#include "telemetry/summary_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace saturate {

namespace {

// {} stands for the mean utilisation.
constexpr const char* kLevels[] = {
    "good: the GPU is kept busy (mean utilisation {})",
    "fair: there is something to gain (mean utilisation {})",
    "low: the GPU does far less than it could (mean utilisation {})",
    "unknown: there is no way to tell how busy the GPU is",
};

// {} stands for the limit.
const char* reason_text(VerdictReason reason) {
    switch (reason) {
        case VerdictReason::no_utilisation:
            return "no utilisation could be read";
        case VerdictReason::mig:
            return "the GPU is split into MIG instances, which report no utilisation";
        case VerdictReason::lost:
            return "a GPU was lost and did not come back; its figures end there";
        case VerdictReason::low_utilisation:
            return "utilisation is under {:.0f} %: the GPU waits for the host";
        case VerdictReason::fluctuates:
            return "utilisation fluctuates by more than {:.0f} points: work arrives in bursts";
        case VerdictReason::busy_but_idle:
            return "\"busy\" means little here: kernels are resident but the chip does hardly any "
                   "work (a spinning wait, as in communication)";
        case VerdictReason::power_capped:
            return "the power limit holds the clocks down";
        case VerdictReason::hot:
            return "hotter than {:.0f} C";
        case VerdictReason::thermal:
            return "heat holds the clocks down";
        case VerdictReason::cpu_full:
            return "the host's CPU is over {:.0f} %: it is the likely bottleneck";
    }
    return "";
}

double reason_limit(VerdictReason reason, const Thresholds& limits) {
    switch (reason) {
        case VerdictReason::low_utilisation:
            return limits.low_percent;
        case VerdictReason::fluctuates:
            return limits.fluctuation_points;
        case VerdictReason::hot:
            return limits.temperature_celsius;
        case VerdictReason::cpu_full:
            return limits.cpu_percent;
        default:
            return 0;
    }
}

std::string bytes_or_dash(const std::optional<double>& bytes) {
    return bytes ? bytes_text(static_cast<std::uint64_t>(*bytes)) : "-";
}

void row(std::string& out, std::string_view label, std::string_view value) {
    constexpr std::size_t kLabelWidth = 12;
    out += fmt::format("  {} {}\n", pad_right(label, kLabelWidth), value);
}

std::string energy_text(double joules) {
    return joules < 36000 ? fmt::format("{:.1f} kJ", joules / 1e3)
                          : fmt::format("{:.3f} kWh", joules / 3.6e6);
}

void gpu_rows(std::string& out, const GpuSummary& gpu) {
    out += fmt::format("GPU {} {}{}\n", gpu.gpu.index, gpu.gpu.name,
                       gpu.fault ? fmt::format(" ({})", *gpu.fault) : "");
    row(out, "utilisation",
        gpu.utilisation_mean
            ? fmt::format("mean {:.1f} %, deviation {:.1f} points, p5-p95 {:.0f}..{:.0f} % (n={})",
                          *gpu.utilisation_mean, *gpu.utilisation_deviation, *gpu.utilisation_p5,
                          *gpu.utilisation_p95, gpu.utilisation_n)
            : std::string("-"));
    row(out, "memory",
        fmt::format("mean {}, peak {} of {}", bytes_or_dash(gpu.memory_mean_bytes),
                    bytes_or_dash(gpu.memory_peak_bytes), bytes_or_dash(gpu.memory_total_bytes)));
    if (gpu.power_mean_watts) {
        std::string power = fmt::format("mean {:.0f} W, peak {:.0f} W", *gpu.power_mean_watts,
                                        *gpu.power_peak_watts);
        if (gpu.power_limit_watts) {
            power += fmt::format(", limit {:.0f} W: {:.0f} % of it used", *gpu.power_limit_watts,
                                 100 * *gpu.power_mean_watts / *gpu.power_limit_watts);
        }
        row(out, "power", power);
    }
    if (gpu.energy_joules) {
        row(out, "energy",
            energy_text(*gpu.energy_joules) +
                (gpu.energy_is_estimate ? " (estimate: power added up)" : ""));
    }
    if (gpu.temperature_peak_celsius) {
        std::string text = fmt::format("peak {:.0f} C", *gpu.temperature_peak_celsius);
        if (auto memory = gpu.memory_temperature_peak_celsius)
            text += fmt::format(", memory {:.0f} C", *memory);
        row(out, "temperature", text);
    }
    if (gpu.clock_mean_mhz) {
        std::string most = gpu.clock_max_mhz ? fmt::format("{:.0f}", *gpu.clock_max_mhz) : "-";
        row(out, "SM clock", fmt::format("mean {:.0f} MHz of {}", *gpu.clock_mean_mhz, most));
    }
    if (gpu.throttle_known) {
        std::string text;
        for (const ThrottleShare& share : gpu.throttle) {
            text +=
                fmt::format("{}{} {:.1f} s", text.empty() ? "" : ", ", share.reason, share.seconds);
        }
        if (text.empty()) text = "no";
        row(out, "throttled",
            text + (gpu.throttle_is_estimate ? " (estimate: from the readings)" : ""));
    }
    if (gpu.sm_active_mean) {
        std::string text = fmt::format("SMs active {:.0f} %", *gpu.sm_active_mean);
        if (gpu.tensor_active_mean)
            text += fmt::format(", tensor cores {:.0f} %", *gpu.tensor_active_mean);
        if (gpu.dram_active_mean) text += fmt::format(", memory {:.0f} %", *gpu.dram_active_mean);
        row(out, "while busy", text);
    } else if (gpu.activity_estimate) {
        row(out, "while busy",
            fmt::format(
                "about {:.0f} % of what the power limit allows (estimate by power above idle)",
                *gpu.activity_estimate));
    }
}

void host_rows(std::string& out, const Summary& summary) {
    const HostSummary& host = summary.host;
    row(out, "host",
        host.cpu_mean ? fmt::format("CPU mean {:.1f} %, peak {:.1f} %, IO wait {:.1f} %",
                                    *host.cpu_mean, *host.cpu_peak, host.io_wait_mean.value_or(0))
                      : std::string("unknown"));
    if (host.tree_cpu_mean) {
        std::string text = fmt::format(
            "{:.0f} % of one core, main thread {:.0f} %, {} loader workers", *host.tree_cpu_mean,
            host.main_thread_mean.value_or(0), host.loader_workers.value_or(0));
        if (host.read_bytes)
            text += fmt::format(", {} read from disk", bytes_text(*host.read_bytes));
        if (host.tree_ended) text += ", ended";
        row(out, "job", text);
    }
    if (summary.own.cpu_percent) {
        std::string memory = summary.own.memory_bytes ? bytes_text(*summary.own.memory_bytes) : "-";
        row(out, "own cost",
            fmt::format("{:.2f} % of one core, {}, {:.0f} driver calls per second",
                        *summary.own.cpu_percent, memory, summary.own.driver_calls_per_second));
    }
}

// Returns the mean of each GPU, or the lowest and the highest of many.
std::string means_text(const Summary& summary) {
    constexpr std::size_t kListed = 4;
    std::vector<std::pair<double, int>> means;
    for (const GpuSummary& gpu : summary.gpus) {
        if (gpu.utilisation_mean) means.emplace_back(*gpu.utilisation_mean, gpu.gpu.index);
    }
    if (means.size() > kListed) {
        auto [low, high] = std::ranges::minmax_element(means);
        return fmt::format("{:.1f} to {:.1f} % on {} GPUs, the lowest on GPU {}", low->first,
                           high->first, means.size(), low->second);
    }
    std::string listed;
    for (const auto& [mean, gpu] : means)
        listed += fmt::format("{}{:.1f} %", listed.empty() ? "" : ", ", mean);
    return listed;
}

}  // namespace

std::vector<std::string> verdict_lines(const Summary& summary) {
    std::vector<std::string> lines{
        fmt::format(fmt::runtime(kLevels[static_cast<int>(summary.level)]), means_text(summary))};
    for (VerdictReason reason : summary.reasons) {
        lines.push_back(fmt::format(fmt::runtime(reason_text(reason)),
                                    reason_limit(reason, summary.thresholds)));
    }
    return lines;
}

std::vector<std::string> next_lines(const Summary& summary, const NextSteps& steps) {
    if (summary.level == VerdictLevel::good) return {};
    if (summary.gpus.empty())
        return {"saturate doctor (shows what this machine has and what is missing)"};
    std::vector<std::string> lines;
    if (!steps.run_folder.empty())
        lines.push_back(fmt::format("saturate diagnose {} (finds the cause)", steps.run_folder));
    lines.push_back(
        "saturate diagnose TRACE (finds the cause in a profiler trace; --how says how "
        "to record one)");
    lines.push_back(
        "saturate optimize --config FILE (sets workers, precision and batch for this machine)");
    return lines;
}

std::string summary_text(const Summary& summary, const NextSteps& steps) {
    std::string out = fmt::format("Summary of {:.1f} s, {} reading{}", summary.seconds,
                                  summary.own.ticks, summary.own.ticks == 1 ? "" : "s");
    if (summary.own.lost_ticks > 0) out += fmt::format(", {} missed", summary.own.lost_ticks);
    out += '\n';
    if (summary.gpus.empty())
        out += fmt::format("GPU: unknown ({})", summary.devices_absent_because) + "\n";
    for (const GpuSummary& gpu : summary.gpus) gpu_rows(out, gpu);
    host_rows(out, summary);
    bool is_first = true;
    for (const std::string& line : verdict_lines(summary)) {
        out += is_first ? fmt::format("Verdict: {}", line) + "\n" : "  - " + line + "\n";
        is_first = false;
    }
    for (const std::string& line : next_lines(summary, steps))
        out += fmt::format("Next: {}", line) + "\n";
    return out;
}

std::vector<std::string> tick_lines(const Snapshot& snapshot) {
    auto number = [](const std::optional<double>& value, std::string_view unit = "") {
        return value ? fmt::format("{:.0f}{}", *value, unit) : std::string("-");
    };
    std::vector<std::string> lines;
    for (const DeviceSample& d : snapshot.devices) {
        if (d.fault) {
            lines.push_back(fmt::format("GPU {} | {}", d.gpu, *d.fault));
            continue;
        }
        std::string memory = "-";
        if (d.memory_used_bytes) {
            memory = bytes_text(*d.memory_used_bytes);
            if (d.memory_total_bytes && *d.memory_total_bytes > 0) {
                memory +=
                    fmt::format(" ({:.0f} %)", 100.0 * static_cast<double>(*d.memory_used_bytes) /
                                                   static_cast<double>(*d.memory_total_bytes));
            }
        }
        lines.push_back(
            fmt::format("GPU {} | {} W | util {} | mem {} | {} C | SM {} MHz | mem {} MHz", d.gpu,
                        number(d.power_watts) + "/" + number(d.power_limit_watts),
                        number(d.utilization_percent, " %"), memory, number(d.temperature_celsius),
                        number(d.clock_sm_mhz), number(d.clock_memory_mhz)));
    }
    if (lines.empty()) {
        const HostSample& host = snapshot.host;
        std::string free =
            host.memory_available_bytes ? bytes_text(*host.memory_available_bytes) : "-";
        lines.push_back(fmt::format("host | CPU {} | IO wait {} | memory free {}",
                                    number(host.cpu_percent, " %"),
                                    number(host.io_wait_percent, " %"), free));
    }
    return lines;
}

}  // namespace saturate
