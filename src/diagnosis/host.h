// SPDX-License-Identifier: Apache-2.0
// The activity of the launching threads as one sequence without overlap: if two events cover the
// same time, the event with the cause that comes first in `Cause` wins.
#pragma once

#include <span>
#include <vector>

#include "diagnosis/timeline.h"

namespace saturate {

// Maps a host event to the cause of idle GPU time that it stands for. Events that say nothing (the
// profiler's step marks, GPU events) map to Cause::unknown.
class HostCauses {
  public:
    explicit HostCauses(const Trace& trace);
    [[nodiscard]] Cause of(std::size_t event) const;
    // True for an operator, range or frame of a compiler; loading a module does not count.
    [[nodiscard]] static bool is_compiling(const Trace& trace, const Event& event);

  private:
    const Trace& trace_;
    std::vector<std::uint8_t> by_name_[4];  // op, runtime, annotation, python
    std::vector<std::uint32_t> blocking_;   // correlations of pageable copies, sorted
};

// Returns the activities of the launching threads in the window. Needs Timeline::one_offs, which
// are part of the result.
[[nodiscard]] std::vector<Activity> host_activities(const Timeline& line);

// Returns what the host was doing at that time, or Cause::host if nothing was recorded. For `hint`
// see charge().
[[nodiscard]] Cause activity_at(std::span<const Activity> host, std::int64_t time_ns,
                                std::size_t& hint);

// Adds the time of [start, end) to the causes of the activities that cover it, and the rest to
// Cause::host. The search starts at index `hint`, which moves on: call in order of time.
void charge(std::span<const Activity> host, std::int64_t start_ns, std::int64_t end_ns,
            std::size_t& hint, CauseTimes& causes);

}  // namespace saturate
