// SPDX-License-Identifier: Apache-2.0
// What some steps of a run add up to: samples, time, and where the time went. A line of a live log,
// a window of an account and a whole run are all of these sums, so that none counts otherwise than
// another. A value type.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "telemetry/record.h"

namespace saturate {

// What a step may tell beside its length.
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
    communication_total,  // hidden or not
    communication_bytes,  // no time from here on
    collectives,
};
inline constexpr std::size_t kStepParts = 12;
// Those that follow one another on the host and make up a step.
inline constexpr std::size_t kHostParts = 8;
[[nodiscard]] std::string_view part_name(StepPart part);  // "input_wait"

struct StepSums {
    std::int64_t steps = 0;
    std::int64_t samples = 0;
    double seconds = 0;          // in steps; pauses between them are not in it
    double sampled_seconds = 0;  // ... of the steps that told how many samples they had

    // `step_seconds` is its own length, with what little lies between it and the next.
    void add(const StepRecord& step, double step_seconds);
    void add(const StepSums& other);

    [[nodiscard]] double sum(StepPart part) const;         // seconds, bytes or a count
    [[nodiscard]] std::int64_t told(StepPart part) const;  // steps that told it
    // Percent of the time, at most 100: what the host gave a device in one window may run in the
    // next. Nothing where no step told.
    [[nodiscard]] std::optional<double> percent(StepPart part) const;
    // Samples over time; nothing without samples.
    [[nodiscard]] std::optional<double> samples_per_second() const;
    [[nodiscard]] double step_seconds() const;  // mean; 0 without steps

  private:
    std::array<double, kStepParts> sums_{};
    std::array<std::int64_t, kStepParts> told_{};
};

}  // namespace saturate
