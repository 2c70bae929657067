// SPDX-License-Identifier: Apache-2.0
// Sums over some steps of a run: samples, time, and how the time divides up. A value type. A line
// of the live log, a window of an account and a whole run all use it, so that they count alike.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "telemetry/record.h"

namespace saturate {

// The values that a step may have in addition to its length.
enum class StepPart {
    input_wait,
    copy,
    forward,
    backward,
    optimizer,
    communication,
    synchronisation,
    log,
    device_busy,
    communication_total,  // hidden or exposed
    communication_bytes,  // from here on not a time
    collectives,
};
inline constexpr std::size_t kStepParts = 12;
// The first parts, which follow one another on the host and make up a step.
inline constexpr std::size_t kHostParts = 8;
[[nodiscard]] std::string_view part_name(StepPart part);  // "input_wait"

struct StepSums {
    std::int64_t steps = 0;
    std::int64_t samples = 0;
    double seconds = 0;          // in steps, without the pauses between them
    double sampled_seconds = 0;  // in steps whose number of samples is known

    // `step_seconds` is the length of the step with the short gap to the next one.
    void add(const StepRecord& step, double step_seconds);
    void add(const StepSums& other);

    [[nodiscard]] double sum(StepPart part) const;         // seconds, bytes or a count
    [[nodiscard]] std::int64_t told(StepPart part) const;  // steps that have it
    // Returns the percentage of the time, or nullopt if no step has the part. Limited to 100,
    // because work that the host launched in one window may run in the next.
    [[nodiscard]] std::optional<double> percent(StepPart part) const;
    // Returns samples over time, or nullopt without samples.
    [[nodiscard]] std::optional<double> samples_per_second() const;
    [[nodiscard]] double step_seconds() const;  // mean; 0 without steps

  private:
    std::array<double, kStepParts> sums_{};
    std::array<std::int64_t, kStepParts> told_{};
};

}  // namespace saturate
