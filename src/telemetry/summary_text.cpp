// SPDX-License-Identifier: Apache-2.0
#include "telemetry/summary_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace saturate {

namespace {

// One message in both languages; {} are filled in order.
struct Message {
    std::string_view english;
    std::string_view chinese;
};

template <typename... Args>
std::string say(const Message& message, Language language, const Args&... args) {
    std::string_view text = language == Language::chinese ? message.chinese : message.english;
    return fmt::format(fmt::runtime(text), args...);
}

constexpr Message kWatched{"Summary of {:.1f} s, {} ticks", "监控总结：{:.1f} 秒，{} 次采样"};
constexpr Message kLostTicks{", {} missed", "，漏采 {} 次"};
constexpr Message kNoDevices{"GPU: unknown ({})", "GPU：未知（{}）"};
constexpr Message kUtilisation{"utilisation", "GPU利用率"};
constexpr Message kUtilisationValue{
    "mean {:.1f} %, deviation {:.1f} points, p5-p95 {:.0f}..{:.0f} % (n={})",
    "平均 {:.1f}%，波动 {:.1f} 个百分点，p5-p95 {:.0f}..{:.0f}%（n={}）"};
constexpr Message kMemory{"memory", "显存"};
constexpr Message kMemoryValue{"mean {}, peak {} of {}", "平均 {}，峰值 {}，共 {}"};
constexpr Message kPower{"power", "功耗"};
constexpr Message kPowerValue{"mean {:.0f} W, peak {:.0f} W", "平均 {:.0f} W，峰值 {:.0f} W"};
constexpr Message kPowerLimit{", limit {:.0f} W: {:.0f} % of it used",
                              "，上限 {:.0f} W，使用了 {:.0f}%"};
constexpr Message kEnergy{"energy", "能耗"};
constexpr Message kEnergyEstimate{" (estimate: power added up)", "（估算：功耗累加）"};
constexpr Message kTemperature{"temperature", "温度"};
constexpr Message kTemperatureValue{"peak {:.0f} C", "峰值 {:.0f} C"};
constexpr Message kMemoryTemperature{", memory {:.0f} C", "，显存 {:.0f} C"};
constexpr Message kClock{"SM clock", "SM频率"};
constexpr Message kClockValue{"mean {:.0f} MHz of {}", "平均 {:.0f} MHz，最高 {}"};
constexpr Message kThrottle{"throttled", "降频"};
constexpr Message kThrottleNone{"no", "无"};
constexpr Message kThrottleEstimate{" (estimate: from the ticks)", "（估算：按采样）"};
constexpr Message kActivity{"while busy", "忙时活动"};
constexpr Message kActivitySm{"SMs active {:.0f} %", "SM活跃 {:.0f}%"};
constexpr Message kActivityTensor{", tensor cores {:.0f} %", "，张量核心 {:.0f}%"};
constexpr Message kActivityDram{", memory {:.0f} %", "，显存带宽 {:.0f}%"};
constexpr Message kActivityEstimate{
    "about {:.0f} % of what the power limit allows (estimate by power above idle)",
    "约为功耗上限允许值的 {:.0f}%（按高于空闲的功耗估算）"};
constexpr Message kHost{"host", "主机"};
constexpr Message kHostValue{"CPU mean {:.1f} %, peak {:.1f} %, IO wait {:.1f} %",
                             "CPU平均 {:.1f}%，峰值 {:.1f}%，IO等待 {:.1f}%"};
constexpr Message kHostUnknown{"unknown", "未知"};
constexpr Message kTree{"job", "任务"};
constexpr Message kTreeValue{"{:.0f} % of one core, main thread {:.0f} %, {} loader workers",
                             "占单核 {:.0f}%，主线程 {:.0f}%，数据加载进程 {} 个"};
constexpr Message kTreeRead{", {} read from disk", "，读盘 {}"};
constexpr Message kTreeEnded{", ended", "，已结束"};
constexpr Message kOwn{"own cost", "监控开销"};
constexpr Message kOwnValue{"{:.2f} % of one core, {}, {:.0f} driver calls/s",
                            "单核的 {:.2f}%，{}，驱动调用 {:.0f} 次/秒"};
constexpr Message kVerdict{"Verdict: {}", "结论：{}"};
constexpr Message kNext{"Next: {}", "下一步：{}"};
constexpr Message kUnknownValue{"-", "-"};

constexpr Message kLevels[] = {
    {"good: the GPU is kept busy (mean utilisation {})", "GPU利用率良好（平均 {}）"},
    {"fair: there is something to gain (mean utilisation {})",
     "GPU利用率一般，仍可提升（平均 {}）"},
    {"low: the GPU does far less than it could (mean utilisation {})", "GPU利用率偏低（平均 {}）"},
    {"unknown: nothing here tells how busy a GPU is", "未知：此处无法得知GPU的忙碌程度"},
};

Message reason_message(VerdictReason reason) {
    switch (reason) {
        case VerdictReason::no_utilisation:
            return {"no utilisation could be read", "无法读取GPU利用率"};
        case VerdictReason::mig:
            return {"the GPU is split into MIG instances, which have no utilisation by design",
                    "GPU处于MIG模式，按设计没有利用率数据"};
        case VerdictReason::lost:
            return {"a GPU was lost and did not come back; its numbers end there",
                    "有GPU掉线，其数据到掉线为止"};
        case VerdictReason::low_utilisation:
            return {"utilisation is under {:.0f} %: the GPU waits for the host",
                    "利用率低于 {:.0f}%：GPU在等待主机"};
        case VerdictReason::fluctuates:
            return {"utilisation fluctuates by more than {:.0f} points: work arrives in bursts",
                    "利用率波动超过 {:.0f} 个百分点：任务供给不连续"};
        case VerdictReason::busy_but_idle:
            return {
                "\"busy\" means little here: kernels are resident but the chip does hardly any "
                "work (a wait that spins, "
                "as in communication)",
                "“忙”名不副实：有内核驻留但几乎没有计算（例如通信自旋等待）"};
        case VerdictReason::power_capped:
            return {"clocks are held down by the power limit", "频率受功耗上限限制"};
        case VerdictReason::hot:
            return {"hotter than {:.0f} C", "温度超过 {:.0f} C"};
        case VerdictReason::thermal:
            return {"clocks are held down by heat", "频率因过热降低"};
        case VerdictReason::cpu_full:
            return {"the host's CPU is over {:.0f} %: it is the likely bottleneck",
                    "主机CPU超过 {:.0f}%：很可能是瓶颈"};
    }
    return {};
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

void gpu_rows(std::string& out, const GpuSummary& gpu, Language lang) {
    auto label = [&](const Message& message) { return say(message, lang); };
    out += fmt::format("GPU {} {}{}\n", gpu.gpu.index, gpu.gpu.name,
                       gpu.fault ? fmt::format(" ({})", *gpu.fault) : "");
    row(out, label(kUtilisation),
        gpu.utilisation_mean
            ? say(kUtilisationValue, lang, *gpu.utilisation_mean, *gpu.utilisation_deviation,
                  *gpu.utilisation_p5, *gpu.utilisation_p95, gpu.utilisation_n)
            : say(kUnknownValue, lang));
    row(out, label(kMemory),
        say(kMemoryValue, lang, bytes_or_dash(gpu.memory_mean_bytes),
            bytes_or_dash(gpu.memory_peak_bytes), bytes_or_dash(gpu.memory_total_bytes)));
    if (gpu.power_mean_watts) {
        std::string power = say(kPowerValue, lang, *gpu.power_mean_watts, *gpu.power_peak_watts);
        if (gpu.power_limit_watts) {
            power += say(kPowerLimit, lang, *gpu.power_limit_watts,
                         100 * *gpu.power_mean_watts / *gpu.power_limit_watts);
        }
        row(out, label(kPower), power);
    }
    if (gpu.energy_joules) {
        row(out, label(kEnergy),
            energy_text(*gpu.energy_joules) +
                (gpu.energy_is_estimate ? say(kEnergyEstimate, lang) : ""));
    }
    if (gpu.temperature_peak_celsius) {
        std::string text = say(kTemperatureValue, lang, *gpu.temperature_peak_celsius);
        if (auto memory = gpu.memory_temperature_peak_celsius)
            text += say(kMemoryTemperature, lang, *memory);
        row(out, label(kTemperature), text);
    }
    if (gpu.clock_mean_mhz) {
        std::string most = gpu.clock_max_mhz ? fmt::format("{:.0f}", *gpu.clock_max_mhz) : "-";
        row(out, label(kClock), say(kClockValue, lang, *gpu.clock_mean_mhz, most));
    }
    if (gpu.throttle_known) {
        std::string text;
        for (const ThrottleShare& share : gpu.throttle) {
            text +=
                fmt::format("{}{} {:.1f} s", text.empty() ? "" : ", ", share.reason, share.seconds);
        }
        if (text.empty()) text = say(kThrottleNone, lang);
        row(out, label(kThrottle),
            text + (gpu.throttle_is_estimate ? say(kThrottleEstimate, lang) : ""));
    }
    if (gpu.sm_active_mean) {
        std::string text = say(kActivitySm, lang, *gpu.sm_active_mean);
        if (gpu.tensor_active_mean) text += say(kActivityTensor, lang, *gpu.tensor_active_mean);
        if (gpu.dram_active_mean) text += say(kActivityDram, lang, *gpu.dram_active_mean);
        row(out, label(kActivity), text);
    } else if (gpu.activity_estimate) {
        row(out, label(kActivity), say(kActivityEstimate, lang, *gpu.activity_estimate));
    }
}

void host_rows(std::string& out, const Summary& summary, Language lang) {
    const HostSummary& host = summary.host;
    row(out, say(kHost, lang),
        host.cpu_mean
            ? say(kHostValue, lang, *host.cpu_mean, *host.cpu_peak, host.io_wait_mean.value_or(0))
            : say(kHostUnknown, lang));
    if (host.tree_cpu_mean) {
        std::string text = say(kTreeValue, lang, *host.tree_cpu_mean,
                               host.main_thread_mean.value_or(0), host.loader_workers.value_or(0));
        if (host.read_bytes) text += say(kTreeRead, lang, bytes_text(*host.read_bytes));
        if (host.tree_ended) text += say(kTreeEnded, lang);
        row(out, say(kTree, lang), text);
    }
    if (summary.own.cpu_percent) {
        std::string memory = summary.own.memory_bytes ? bytes_text(*summary.own.memory_bytes) : "-";
        row(out, say(kOwn, lang),
            say(kOwnValue, lang, *summary.own.cpu_percent, memory,
                summary.own.driver_calls_per_second));
    }
}

// Each GPU's mean, or of many the lowest and the highest.
std::string means_text(const Summary& summary, Language language) {
    constexpr Message kRange{"{:.1f} to {:.1f} % on {} GPUs, the lowest on GPU {}",
                             "{:.1f} 到 {:.1f} %，共 {} 块GPU，最低为 GPU {}"};
    constexpr std::size_t kListed = 4;
    std::vector<std::pair<double, int>> means;
    for (const GpuSummary& gpu : summary.gpus) {
        if (gpu.utilisation_mean) means.emplace_back(*gpu.utilisation_mean, gpu.gpu.index);
    }
    if (means.size() > kListed) {
        auto [low, high] = std::ranges::minmax_element(means);
        return say(kRange, language, low->first, high->first, means.size(), low->second);
    }
    std::string listed;
    for (const auto& [mean, gpu] : means)
        listed += fmt::format("{}{:.1f} %", listed.empty() ? "" : ", ", mean);
    return listed;
}

}  // namespace

Language language_of(std::string_view option, std::string_view locale) {
    std::string_view chosen = option.empty() ? locale : option;
    return chosen.starts_with("zh") ? Language::chinese : Language::english;
}

std::vector<std::string> verdict_lines(const Summary& summary, Language language) {
    std::vector<std::string> lines{
        say(kLevels[static_cast<int>(summary.level)], language, means_text(summary, language))};
    for (VerdictReason reason : summary.reasons) {
        lines.push_back(
            say(reason_message(reason), language, reason_limit(reason, summary.thresholds)));
    }
    return lines;
}

std::vector<std::string> next_lines(const Summary& summary, Language language,
                                    const NextSteps& steps) {
    constexpr Message kDoctor{"saturate doctor (says what this machine has and lacks)",
                              "saturate doctor（查看本机具备和缺少什么）"};
    constexpr Message kDiagnose{"saturate diagnose {} (finds the cause)",
                                "saturate diagnose {}（找出原因）"};
    constexpr Message kTrace{
        "saturate diagnose TRACE (finds the cause in a profiler trace; --how says how to record "
        "one)",
        "saturate diagnose TRACE（从性能跟踪文件中找出原因；--how 说明如何录制）"};
    constexpr Message kOptimize{
        "saturate optimize --config FILE (sets workers, precision and batch for this machine)",
        "saturate optimize --config FILE（按本机设置加载线程、精度和批大小）"};
    if (summary.level == VerdictLevel::good) return {};
    if (summary.gpus.empty()) return {say(kDoctor, language)};
    std::vector<std::string> lines;
    if (!steps.run_folder.empty()) lines.push_back(say(kDiagnose, language, steps.run_folder));
    lines.push_back(say(kTrace, language));
    lines.push_back(say(kOptimize, language));
    return lines;
}

std::string summary_text(const Summary& summary, Language language, const NextSteps& steps) {
    std::string out = say(kWatched, language, summary.seconds, summary.own.ticks);
    if (summary.own.lost_ticks > 0) out += say(kLostTicks, language, summary.own.lost_ticks);
    out += '\n';
    if (summary.gpus.empty())
        out += say(kNoDevices, language, summary.devices_absent_because) + "\n";
    for (const GpuSummary& gpu : summary.gpus) gpu_rows(out, gpu, language);
    host_rows(out, summary, language);
    bool is_first = true;
    for (const std::string& line : verdict_lines(summary, language)) {
        out += is_first ? say(kVerdict, language, line) + "\n" : "  - " + line + "\n";
        is_first = false;
    }
    for (const std::string& line : next_lines(summary, language, steps))
        out += say(kNext, language, line) + "\n";
    return out;
}

std::vector<std::string> tick_lines(const Snapshot& snapshot, Language language) {
    constexpr Message kLine{
        "GPU {} | {} W | util {} | mem {} | {} C | SM {} MHz | mem {} MHz",
        "GPU {} | 功耗 {} W | GPU利用率 {} | 显存 {} | {} C | SM {} MHz | 显存 {} MHz"};
    constexpr Message kFault{"GPU {} | {}", "GPU {} | {}"};
    constexpr Message kHostLine{"host | CPU {} | IO wait {} | memory free {}",
                                "主机 | CPU {} | IO等待 {} | 可用内存 {}"};
    auto number = [](const std::optional<double>& value, std::string_view unit = "") {
        return value ? fmt::format("{:.0f}{}", *value, unit) : std::string("-");
    };
    std::vector<std::string> lines;
    for (const DeviceSample& d : snapshot.devices) {
        if (d.fault) {
            lines.push_back(say(kFault, language, d.gpu, *d.fault));
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
            say(kLine, language, d.gpu, number(d.power_watts) + "/" + number(d.power_limit_watts),
                number(d.utilization_percent, " %"), memory, number(d.temperature_celsius),
                number(d.clock_sm_mhz), number(d.clock_memory_mhz)));
    }
    if (lines.empty()) {
        const HostSample& host = snapshot.host;
        std::string free =
            host.memory_available_bytes ? bytes_text(*host.memory_available_bytes) : "-";
        lines.push_back(say(kHostLine, language, number(host.cpu_percent, " %"),
                            number(host.io_wait_percent, " %"), free));
    }
    return lines;
}

}  // namespace saturate
