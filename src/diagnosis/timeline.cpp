// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/timeline.h"

#include <algorithm>

#include "diagnosis/host.h"
#include "diagnosis/kernels.h"
#include "diagnosis/timeline_parts.h"
#include "diagnosis/trace_build.h"

namespace saturate {
namespace {

// Sums up the busy time by kind and collects the gaps between.
void split_busy(const Trace& trace, Timeline& line) {
    struct Edge {
        std::int64_t time;
        int kind;
        int step;
    };
    KernelClasses classes(trace);
    std::vector<Edge> edges;
    edges.reserve(line.gpu.size() * 2);
    for (std::uint32_t index : line.gpu) {
        const Event& event = trace.events[index];
        int kind = event.category == Category::memcpy                ? 2
                   : event.category == Category::memset              ? 3
                   : classes.of(event) == KernelClass::communication ? 1
                                                                     : 0;
        edges.push_back({std::max(event.start_ns, line.start_ns), kind, 1});
        edges.push_back({std::min(event.end_ns(), line.end_ns), kind, -1});
    }
    std::ranges::stable_sort(edges, {}, &Edge::time);
    line.gaps.reserve(line.gpu.size() + 1);
    int open[4] = {};
    std::int64_t since = line.start_ns;
    StepCursor cursor(line);
    auto add = [](Split& split, int kind, std::int64_t time) {
        std::int64_t* places[] = {&split.compute_ns, &split.communication_ns, &split.memcpy_ns,
                                  &split.memset_ns};
        *places[kind] += time;
    };
    auto close = [&](std::int64_t until) {
        if (until <= since) return;
        int kind = open[0] ? 0 : open[1] ? 1 : open[2] ? 2 : open[3] ? 3 : -1;
        if (kind < 0) {
            Gap gap;
            gap.start_ns = since;
            gap.end_ns = until;
            line.gaps.push_back(gap);
        } else {
            add(line.split, kind, until - since);
            cursor.split(since, until,
                         [&](Step& step, std::int64_t time) { add(step.split, kind, time); });
        }
        since = until;
    };
    for (const Edge& edge : edges) {
        close(edge.time);
        open[edge.kind] += edge.step;
    }
    close(line.end_ns);
    line.gaps.shrink_to_fit();
}

}  // namespace

std::string_view cause_key(Cause cause) {
    constexpr std::string_view kKeys[kCauses] = {
        "recording", "startup",    "input",     "synchronisation", "allocator",
        "pause",     "compile",    "optimizer", "launch",          "python",
        "host",      "dependency", "latency",   "graph",           "unknown"};
    return kKeys[static_cast<std::size_t>(cause)];
}

std::string_view cause_text(Cause cause) {
    constexpr std::string_view kTexts[kCauses] = {"recording CUDA graphs",
                                                  "start-up, happens once",
                                                  "waiting for data",
                                                  "synchronisation",
                                                  "allocating GPU memory",
                                                  "checkpoint or evaluation",
                                                  "compilation",
                                                  "launching the optimizer",
                                                  "launching operators",
                                                  "python between operators",
                                                  "host, nothing recorded",
                                                  "waiting for another stream",
                                                  "launch latency",
                                                  "inside CUDA graphs, not recorded",
                                                  "unknown, the trace does not show why"};
    return kTexts[static_cast<std::size_t>(cause)];
}

Cause Gap::main_cause() const {
    auto most = std::ranges::max_element(causes);
    return static_cast<Cause>(most - causes.begin());
}

double Timeline::percent(std::int64_t ns) const {
    return length_ns() > 0 ? 100.0 * static_cast<double>(ns) / static_cast<double>(length_ns())
                           : 0.0;
}

std::int64_t Timeline::step_ns() const {
    if (!has_steps) return length_ns();
    std::vector<std::int64_t> lengths;
    for (const Step& step : steps) lengths.push_back(step.length_ns());
    std::ranges::sort(lengths);
    std::size_t middle = lengths.size() / 2;
    std::int64_t median =
        lengths.size() % 2 ? lengths[middle] : (lengths[middle - 1] + lengths[middle]) / 2;
    // If the GPU is several steps behind the host, the host's step marks are closer together than
    // the work of the steps.
    bool is_behind = end_ns - steps.back().end_ns > median;
    auto count = static_cast<std::int64_t>(steps.size());
    return is_behind ? std::max(median, length_ns() / count) : median;
}

Timeline make_timeline(const Trace& trace) {
    Timeline line;
    line.trace = &trace;
    choose_window(line);
    find_steady(line);
    line.host = host_activities(line);
    split_busy(trace, line);
    if (line.device >= 0) {
        judge_gaps(line);
    } else {
        // In a trace of the CPU alone, only the activity of the host is known.
        line.gaps.clear();
        std::size_t hint = 0;
        charge(line.host, line.start_ns, line.end_ns, hint, line.causes);
        line.split.unknown_ns = line.length_ns();
    }
    return line;
}

std::string source_of(const Trace& trace, std::size_t index) {
    const Event& event = trace.events[index];
    if (const OpDetail* detail = trace.op_detail(event); detail && detail->source)
        return std::string(trace.names.text(detail->source));
    if (!trace.has_stacks) return "";
    // Search outwards for the nearest earlier frame on the thread that covers the event.
    std::size_t looked = 0;
    for (std::size_t i = index; i-- > 0 && looked < 200'000; ++looked) {
        const Event& around = trace.events[i];
        if (around.lane != event.lane || around.end_ns() < event.end_ns()) continue;
        if (around.category == Category::python && is_user_frame(trace.name(around)))
            return std::string(trace.name(around));
        if (const OpDetail* detail = trace.op_detail(around); detail && detail->source)
            return std::string(trace.names.text(detail->source));
    }
    return "";
}

}  // namespace saturate
