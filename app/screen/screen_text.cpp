// SPDX-License-Identifier: Apache-2.0
#include "screen_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace saturate {

namespace {

Labels labels_in(Language language) {
    auto say = [&](std::string_view english) { return translated(english, language); };
    return {.gpu = "GPU",
            .name = say("Name"),
            .util = say("Util"),
            .sm = "SM",
            .memory = say("Memory"),
            .ram = say("RAM"),
            .power = say("Power"),
            .temperature = say("Temp"),
            .clock = say("Clock"),
            .note = say("Throttled by"),
            .pid = "PID",
            .tid = "TID",
            .thread = say("Thread"),
            .user = say("User"),
            .command = say("Command"),
            .cpu = "CPU",
            .cores = say("cores"),
            .processes = say("Processes"),
            .host = say("Host"),
            .io_wait = say("IO wait"),
            .job = say("Job"),
            .workers = say("loader workers"),
            .all = say("all"),
            .paused = say("paused"),
            .lost = say("lost"),
            .driver = say("driver"),
            .keys = say("q quit  p pause  g GPU"),
            .units = say("u units"),
            .small = say("terminal too small"),
            .mean = say("mean"),
            .no_gpu = say("No GPU to watch"),
            .more = say("more")};
}

}  // namespace

const Labels& labels(Language language) {
    static const Labels kEnglish = labels_in(Language::english);
    if (language == Language::english) return kEnglish;
    static const Labels kChinese = labels_in(Language::chinese);
    return kChinese;
}

std::string cut(std::string_view text, std::size_t width) {
    std::string out;
    std::size_t used = 0;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t length = 1;
        while (at + length < text.size() &&
               (static_cast<unsigned char>(text[at + length]) & 0xC0) == 0x80)
            ++length;
        std::string_view one = text.substr(at, length);
        std::size_t wide = display_width(one);
        if (used + wide > width) break;
        // A process can have any name; replace control characters, which would move the cursor.
        out += static_cast<unsigned char>(one[0]) < 0x20 || one[0] == 0x7F ? std::string_view(" ")
                                                                           : one;
        used += wide;
        at += length;
    }
    return out;
}

std::string left(std::string_view text, std::size_t width) {
    return pad_right(cut(text, width), width);
}
std::string right(std::string_view text, std::size_t width) {
    std::string shown = cut(text, width);
    return std::string(width - std::min(width, display_width(shown)), ' ') + shown;
}

std::string whole(const std::optional<double>& value, const char* unit) {
    return value ? fmt::format("{:.0f}{}", *value, unit) : "-";
}

std::string memory_text(const DeviceSample& sample, MemoryUnit unit) {
    if (!sample.memory_used_bytes) return "-";
    auto used = static_cast<double>(*sample.memory_used_bytes);
    if (!sample.memory_total_bytes) return fmt::format("{:.1f} GiB", used / 0x1p30);
    auto total = static_cast<double>(*sample.memory_total_bytes);
    if (unit == MemoryUnit::percent) return fmt::format("{:.0f} %", used / total * 100);
    bool binary = unit == MemoryUnit::gib;
    double scale = binary ? 0x1p30 : 1e9;
    return fmt::format("{:.1f}/{:.0f} {}", used / scale, total / scale, binary ? "GiB" : "GB");
}

std::string bytes_in(const std::optional<std::uint64_t>& bytes, MemoryUnit unit) {
    if (!bytes) return "-";
    bool decimal = unit == MemoryUnit::gb;
    return fmt::format("{:.1f} {}", static_cast<double>(*bytes) / (decimal ? 1e9 : 0x1p30),
                       decimal ? "GB" : "GiB");
}

std::string power_text(const DeviceSample& sample) {
    if (!sample.power_watts) return "-";
    if (!sample.power_limit_watts) return fmt::format("{:.0f} W", *sample.power_watts);
    return fmt::format("{:.0f}/{:.0f} W", *sample.power_watts, *sample.power_limit_watts);
}

Tone utilization_tone(const std::optional<double>& percent, const Thresholds& thresholds) {
    if (!percent) return Tone::dim;
    if (*percent >= thresholds.good_percent) return Tone::good;
    return *percent < thresholds.low_percent ? Tone::bad : Tone::middling;
}

Tone temperature_tone(const std::optional<double>& celsius, const Thresholds& thresholds) {
    if (!celsius) return Tone::dim;
    if (*celsius > thresholds.temperature_celsius) return Tone::bad;
    return *celsius > thresholds.temperature_celsius - 5 ? Tone::middling : Tone::plain;
}

Tone memory_tone(const DeviceSample& sample) {
    if (!sample.memory_used_bytes || !sample.memory_total_bytes) return Tone::plain;
    double share = static_cast<double>(*sample.memory_used_bytes) /
                   static_cast<double>(*sample.memory_total_bytes);
    return share > 0.95 ? Tone::middling : Tone::plain;
}

std::string held_down_by(const DeviceSample& sample, Language language) {
    struct Reason {
        std::uint64_t bit;
        const char* english;
    };
    constexpr Reason kReasons[] = {
        {kThrottlePowerCap, "power cap"},           {kThrottleSoftwareThermal, "heat"},
        {kThrottleHardwareThermal, "heat (hw)"},    {kThrottlePowerBrake, "power brake"},
        {kThrottleHardwareSlowdown, "hw slowdown"}, {kThrottleSyncBoost, "sync boost"},
        {kThrottleApplicationClocks, "set clocks"},
    };
    std::string out;
    for (const Reason& reason : kReasons) {
        if (!(sample.throttle_reasons.value_or(0) & reason.bit)) continue;
        if (!out.empty()) out += ", ";
        out += translated(reason.english, language);
    }
    return out;
}

std::string_view short_name(std::string_view name) {
    for (std::string_view maker : {"NVIDIA ", "GeForce "}) {
        if (name.starts_with(maker)) name.remove_prefix(maker.size());
    }
    return name;
}

}  // namespace saturate
