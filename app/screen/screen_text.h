// SPDX-License-Identifier: Apache-2.0
// The words, cells and tones of monitor's live view.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "screen_frame.h"

namespace saturate {

struct Labels {
    std::string gpu, name, util, sm, memory, ram, power, temperature, clock, note;
    std::string pid, tid, thread, user, command, cpu, cores, processes, host, io_wait, job, workers;
    std::string all, paused, lost, driver, keys, units, small, mean, no_gpu, more;
};

[[nodiscard]] const Labels& labels(Language language);

// cut() limits text to a display width, never inside a character. left() and right() also pad it.
[[nodiscard]] std::string cut(std::string_view text, std::size_t width);
[[nodiscard]] std::string left(std::string_view text, std::size_t width);
[[nodiscard]] std::string right(std::string_view text, std::size_t width);

// These return "-" for unknown values.
[[nodiscard]] std::string whole(const std::optional<double>& value, const char* unit);
[[nodiscard]] std::string memory_text(const DeviceSample& sample, MemoryUnit unit);
[[nodiscard]] std::string bytes_in(const std::optional<std::uint64_t>& bytes, MemoryUnit unit);
[[nodiscard]] std::string power_text(const DeviceSample& sample);
[[nodiscard]] std::string held_down_by(const DeviceSample& sample, Language language);
[[nodiscard]] std::string_view short_name(std::string_view name);  // without the vendor

[[nodiscard]] Tone utilization_tone(const std::optional<double>& percent,
                                    const Thresholds& thresholds);
[[nodiscard]] Tone temperature_tone(const std::optional<double>& celsius,
                                    const Thresholds& thresholds);
[[nodiscard]] Tone memory_tone(const DeviceSample& sample);

}  // namespace saturate
