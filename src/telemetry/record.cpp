// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record.h"

#include <array>

namespace saturate {

namespace {

constexpr std::array<std::string_view, 10> kEventNames = {
    "epoch",      "evaluation", "checkpoint",   "out_of_memory", "nonfinite_loss",
    "bad_sample", "throttle",   "worker_death", "gpu_lost",      "note"};

}  // namespace

std::string_view event_name(EventKind kind) { return kEventNames[static_cast<std::size_t>(kind)]; }

std::optional<EventKind> event_kind(std::string_view name) {
    for (std::size_t i = 0; i < kEventNames.size(); ++i) {
        if (kEventNames[i] == name) return static_cast<EventKind>(i);
    }
    return std::nullopt;
}

}  // namespace saturate
