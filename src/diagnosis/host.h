// SPDX-License-Identifier: Apache-2.0
// What the launching threads did, as one sequence of activities without overlap: where two events
// cover the same time the one whose cause comes first in `Cause` is kept.
#pragma once

#include <span>
#include <vector>

#include "diagnosis/timeline.h"

namespace saturate {

// The cause that an event of the host stands for while the GPU is idle; Cause::unknown for events
// that say nothing (the profiler's step marks, GPU events).
class HostCauses {
  public:
    explicit HostCauses(const Trace& trace);
    [[nodiscard]] Cause of(std::size_t event) const;
    // An operator, range or frame of a compiler; loading a module is not meant.
    [[nodiscard]] static bool is_compiling(const Trace& trace, const Event& event);

  private:
    const Trace& trace_;
    std::vector<std::uint8_t> by_name_[4];  // op, runtime, annotation, python
    std::vector<std::uint32_t> blocking_;   // correlations of pageable copies, sorted
};

// Of the threads that launch, in the window; what happens once is there as found before.
[[nodiscard]] std::vector<Activity> host_activities(const Timeline& line);

// What the host was doing at that time; Cause::host where nothing was recorded. `hint` as below.
[[nodiscard]] Cause activity_at(std::span<const Activity> host, std::int64_t time_ns,
                                std::size_t& hint);

// Adds the time of [start, end) to the causes of the activities that cover it, what is left to
// Cause::host. `hint` is where to look first and moves on; calls must come in order of time.
void charge(std::span<const Activity> host, std::int64_t start_ns, std::int64_t end_ns,
            std::size_t& hint, CauseTimes& causes);

}  // namespace saturate
