// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "diagnosis/timeline_parts.h"

namespace saturate {
namespace {

bool is_step(const Trace& trace, const Event& event) {
    return event.category == Category::annotation && trace.name(event).starts_with("ProfilerStep#");
}

// Finds the launch of a GPU event: the runtime call with its correlation id. If that call was not
// recorded, the operator around it, by external id or arrow.
class Launches {
  public:
    explicit Launches(const Trace& trace) {
        for (std::size_t i = 0; i < trace.events.size(); ++i) {
            const Event& event = trace.events[i];
            auto index = static_cast<std::int32_t>(i);
            if (event.category == Category::runtime && event.correlation)
                by_correlation_.emplace(event.correlation, index);
            if (event.category == Category::op && event.external)
                by_external_.emplace(event.external, index);
        }
    }
    [[nodiscard]] std::int32_t of(const Event& gpu) const {
        if (auto found = by_correlation_.find(gpu.correlation);
            gpu.correlation && found != by_correlation_.end())
            return found->second;
        if (auto found = by_external_.find(gpu.external);
            gpu.external && found != by_external_.end())
            return found->second;
        return -1;
    }

  private:
    std::unordered_map<std::uint32_t, std::int32_t> by_correlation_;
    std::unordered_map<std::uint32_t, std::int32_t> by_external_;
};

// Analyses the GPU with the most work.
void choose_device(const Trace& trace, Timeline& line) {
    std::map<int, std::int64_t> work;
    for (const Event& event : trace.events) {
        if (is_gpu(event.category)) work[trace.lane(event).device] += event.duration_ns + 1;
    }
    std::int64_t most = 0;
    for (const auto& [device, time] : work) {
        line.devices_used.push_back(device);
        if (time > most) {
            most = time;
            line.device = device;
        }
    }
}

std::pair<std::int64_t, std::int64_t> whole_trace(const Trace& trace) {
    std::int64_t start = std::numeric_limits<std::int64_t>::max(), end = 0;
    for (const Event& event : trace.events) {
        if (event.category > Category::python) continue;
        start = std::min(start, event.start_ns);
        end = std::max(end, event.end_ns());
    }
    return {std::min(start, end), end};
}

// A profiler started from outside marks no steps, but PyTorch marks the steps of the optimizer. The
// end of a step of the optimizer that steps first is the end of a training step. The steps cover
// the whole trace, wherever it was cut. Returns no steps if the trace is mostly something else.
std::vector<Step> steps_by_optimizer(const Trace& trace) {
    auto [start, end] = whole_trace(trace);
    std::vector<Step> out;
    const Event* first = nullptr;
    for (const Event& event : trace.events) {
        if (event.category != Category::annotation || trace.lane(event).gpu ||
            !trace.name(event).starts_with("Optimizer.step#"))
            continue;
        if (!first) first = &event;
        if (event.name != first->name || event.lane != first->lane) continue;
        std::int64_t last_end = out.empty() ? start : out.back().end_ns;
        out.push_back({last_end, event.end_ns(), std::string(trace.name(event)), {}, {}, 0});
    }
    constexpr double kMostOfIt = 0.8;
    if (out.size() < 3 || static_cast<double>(out.back().end_ns - out.front().end_ns) <
                              kMostOfIt * static_cast<double>(end - start))
        return {};
    out.back().end_ns = end;
    return out;
}

std::vector<Step> marked_steps(const Trace& trace) {
    std::vector<Step> out;
    for (const Event& event : trace.events) {
        if (is_step(trace, event))
            out.push_back(
                {event.start_ns, event.end_ns(), std::string(trace.name(event)), {}, {}, 0});
    }
    return out;
}

// True if the profiler was still starting up in the first step, as far as it says so itself.
bool starts_in(const Trace& trace, const Step& first) {
    std::int64_t overhead = 0;
    for (const Event& event : trace.events) {
        if (event.category == Category::overhead && event.start_ns >= first.start_ns &&
            event.start_ns < first.end_ns)
            overhead += event.duration_ns;
    }
    return overhead * 20 > first.length_ns();
}

bool is_long(const std::vector<Step>& steps) {
    std::vector<std::int64_t> lengths;
    for (const Step& step : steps) lengths.push_back(step.length_ns());
    std::ranges::nth_element(lengths,
                             lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2));
    return steps[0].length_ns() > 2 * lengths[lengths.size() / 2];
}

void find_window(const Trace& trace, const Launches& launches, Timeline& line) {
    line.steps = marked_steps(trace);
    if (line.steps.empty()) {
        std::tie(line.start_ns, line.end_ns) = whole_trace(trace);
        line.steps = steps_by_optimizer(trace);
        line.has_steps = !line.steps.empty();
        if (line.has_steps) return;
        line.steps.push_back({line.start_ns, line.end_ns, "the whole trace", {}, {}, 0});
        return;
    }
    line.has_steps = true;
    bool is_starting = starts_in(trace, line.steps[0]);
    if (line.steps.size() >= 3 && (is_starting || is_long(line.steps))) {
        line.steps_dropped = 1;
        line.is_first_step_long = !is_starting;
        line.steps.erase(line.steps.begin());
    }
    line.start_ns = line.steps.front().start_ns;
    std::int64_t last_end = 0;
    for (const Step& step : line.steps) last_end = std::max(last_end, step.end_ns);
    // The GPU finishes the last step after the host.
    line.end_ns = last_end;
    for (const Event& event : trace.events) {
        if (!is_gpu(event.category) || event.end_ns() <= line.end_ns) continue;
        std::int32_t launch = launches.of(event);
        bool belongs = launch >= 0
                           ? trace.events[static_cast<std::size_t>(launch)].start_ns < last_end
                           : event.start_ns < last_end;
        if (belongs) line.end_ns = event.end_ns();
    }
}

void collect_gpu(const Trace& trace, const Launches& launches, Timeline& line) {
    std::vector<std::size_t> by_lane(trace.lanes.size());
    std::size_t count = 0;
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
        const Event& event = trace.events[i];
        if (!is_gpu(event.category) || trace.lane(event).device != line.device) continue;
        if (event.start_ns >= line.end_ns || event.end_ns() <= line.start_ns) continue;
        line.gpu.push_back(static_cast<std::uint32_t>(i));
        std::int32_t launch = launches.of(event);
        line.launch_of.push_back(launch);
        if (launch >= 0) {
            ++by_lane[trace.events[static_cast<std::size_t>(launch)].lane];
            ++count;
        }
    }
    std::vector<bool> is_ours(trace.lanes.size());
    for (std::size_t i = 0; i < by_lane.size(); ++i) is_ours[i] = by_lane[i] * 100 > count;
    // The thread that runs the loop counts even if another thread launches everything.
    for (const Event& event : trace.events) {
        if (event.category == Category::annotation &&
            (is_step(trace, event) || trace.name(event).starts_with("enumerate(DataLoader)#")))
            is_ours[event.lane] = true;
    }
    for (std::size_t i = 0; i < is_ours.size(); ++i) {
        if (is_ours[i] && !trace.lanes[i].gpu)
            line.host_lanes.push_back(static_cast<std::uint16_t>(i));
    }
    if (line.gpu.empty()) {  // the work is on the host: the backward pass has a thread of its own
        line.host_lanes.clear();
        for (const Event& event : trace.events) {
            if (event.category == Category::op) is_ours[event.lane] = true;
        }
        for (std::size_t i = 0; i < is_ours.size(); ++i) {
            if (is_ours[i]) line.host_lanes.push_back(static_cast<std::uint16_t>(i));
        }
    }
}

}  // namespace

void choose_window(Timeline& line) {
    const Trace& trace = *line.trace;
    choose_device(trace, line);
    Launches launches(trace);
    find_window(trace, launches, line);
    collect_gpu(trace, launches, line);
}

}  // namespace saturate
