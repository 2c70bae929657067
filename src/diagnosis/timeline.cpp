// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/timeline.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "diagnosis/host.h"
#include "diagnosis/kernels.h"
#include "diagnosis/trace_build.h"

namespace saturate {
namespace {

constexpr std::int64_t kLatencyMost = 10'000;  // between a launch and the start of its kernel

bool is_step(const Trace& trace, const Event& event) {
    return event.category == Category::annotation && trace.name(event).starts_with("ProfilerStep#");
}

// By correlation to the runtime call; where that was not recorded, by external id or arrow to the
// operator around it.
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

// The GPU with the most work is the one that is looked at.
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

// Steps that start with the profiler's own start-up do not count.
std::size_t steps_to_drop(const Trace& trace, const std::vector<const Event*>& marks) {
    if (marks.size() < 3) return 0;
    std::vector<std::int64_t> lengths;
    for (const Event* mark : marks) lengths.push_back(mark->duration_ns);
    std::ranges::nth_element(lengths,
                             lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2));
    std::int64_t median = lengths[lengths.size() / 2];
    const Event& first = *marks[0];
    if (first.duration_ns > 2 * median) return 1;
    std::int64_t overhead = 0;
    for (const Event& event : trace.events) {
        if (event.category == Category::overhead && event.start_ns >= first.start_ns &&
            event.start_ns < first.end_ns())
            overhead += event.duration_ns;
    }
    return overhead * 20 > first.duration_ns ? 1 : 0;
}

void choose_window(const Trace& trace, const Launches& launches, Timeline& line) {
    std::vector<const Event*> marks;
    for (const Event& event : trace.events) {
        if (is_step(trace, event)) marks.push_back(&event);
    }
    if (marks.empty()) {
        line.start_ns = std::numeric_limits<std::int64_t>::max();
        line.end_ns = 0;
        for (const Event& event : trace.events) {
            if (event.category > Category::python) continue;
            line.start_ns = std::min(line.start_ns, event.start_ns);
            line.end_ns = std::max(line.end_ns, event.end_ns());
        }
        if (line.start_ns > line.end_ns) line.start_ns = line.end_ns;
        line.steps.push_back({line.start_ns, line.end_ns, "the whole trace", {}, {}, 0});
        return;
    }
    line.has_steps = true;
    line.steps_dropped = steps_to_drop(trace, marks);
    marks.erase(marks.begin(), marks.begin() + static_cast<std::ptrdiff_t>(line.steps_dropped));
    line.start_ns = marks.front()->start_ns;
    std::int64_t last_end = 0;
    for (const Event* mark : marks) {
        line.steps.push_back(
            {mark->start_ns, mark->end_ns(), std::string(trace.name(*mark)), {}, {}, 0});
        last_end = std::max(last_end, mark->end_ns());
    }
    // The GPU's share of the last step ends after the host's.
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
    // The thread that runs the loop belongs to them even when another launches everything.
    for (const Event& event : trace.events) {
        if (event.category == Category::annotation &&
            (is_step(trace, event) || trace.name(event).starts_with("enumerate(DataLoader)#")))
            is_ours[event.lane] = true;
    }
    for (std::size_t i = 0; i < is_ours.size(); ++i) {
        if (is_ours[i] && !trace.lanes[i].gpu)
            line.host_lanes.push_back(static_cast<std::uint16_t>(i));
    }
    if (line.gpu.empty() && line.host_lanes.empty()) {
        for (const Event& event : trace.events) {
            if (event.category == Category::op) is_ours[event.lane] = true;
        }
        for (std::size_t i = 0; i < is_ours.size(); ++i) {
            if (is_ours[i]) line.host_lanes.push_back(static_cast<std::uint16_t>(i));
        }
    }
}

// Which step a time belongs to: the last one that started.
class StepCursor {
  public:
    explicit StepCursor(Timeline& line) : line_(line) {}
    // Calls part(step, nanoseconds) for each step that [start, end) touches; in order of time.
    template <typename Part>
    void split(std::int64_t start, std::int64_t end, Part part) {
        while (at_ + 1 < line_.steps.size() && line_.steps[at_ + 1].start_ns <= start) ++at_;
        std::size_t step = at_;
        while (start < end) {
            std::int64_t stop = step + 1 < line_.steps.size()
                                    ? std::min(end, std::max(start, line_.steps[step + 1].start_ns))
                                    : end;
            if (stop > start) part(line_.steps[step], stop - start);
            start = stop;
            if (start < end) ++step;
        }
    }

  private:
    Timeline& line_;
    std::size_t at_ = 0;
};

// The sum of the busy time by kind, and the gaps between.
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
}

// Launches of graphs whose nodes have no events of their own, by start.
std::vector<std::int64_t> unseen_graphs(const Trace& trace, const Timeline& line) {
    std::vector<std::int32_t> seen = line.launch_of;
    std::ranges::sort(seen);
    std::vector<std::int64_t> out;
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
        const Event& event = trace.events[i];
        if (event.category == Category::runtime && is_graph_launch(trace.name(event)) &&
            !std::ranges::binary_search(seen, static_cast<std::int32_t>(i)))
            out.push_back(event.start_ns);
    }
    return out;
}

// Charges every gap. The rules are in the order in which they are asked.
class GapJudge {
  public:
    GapJudge(const Trace& trace, Timeline& line)
        : trace_(trace), line_(line), graphs_(unseen_graphs(trace, line)) {}

    void judge() {
        std::size_t next = 0;
        std::int32_t before = -1;  // the GPU event that ended last, by index into line_.gpu
        for (Gap& gap : line_.gaps) {
            while (next < line_.gpu.size() && gpu(next).start_ns < gap.end_ns) {
                if (before < 0 ||
                    gpu(next).end_ns() >= gpu(static_cast<std::size_t>(before)).end_ns())
                    before = static_cast<std::int32_t>(next);
                ++next;
            }
            gap.head = before < 0;
            if (next < line_.gpu.size()) {
                gap.next = static_cast<std::int32_t>(line_.gpu[next]);
                gap.launch = line_.launch_of[next];
            }
            judge(gap, before);
        }
    }

  private:
    [[nodiscard]] const Event& gpu(std::size_t at) const { return trace_.events[line_.gpu[at]]; }
    [[nodiscard]] const Event& event(std::int32_t index) const {
        return trace_.events[static_cast<std::size_t>(index)];
    }

    void judge(Gap& gap, std::int32_t before) {
        std::int64_t from = gap.start_ns;
        if (gap.next < 0) {  // the tail: whatever the host did
            charge(line_.host, from, gap.end_ns, hint_, gap.causes);
            return;
        }
        if (gap.launch < 0) {
            at(gap.causes, Cause::unknown) += gap.length_ns();
            return;
        }
        const Event& launch = event(gap.launch);
        std::int32_t launch_before =
            before >= 0 ? line_.launch_of[static_cast<std::size_t>(before)] : -1;
        std::int64_t earliest = launch_before >= 0 ? event(launch_before).start_ns : from;
        // A graph without recorded nodes, launched between the two: it ran here.
        auto graph = std::ranges::upper_bound(graphs_, earliest);
        if (graph != graphs_.end() && *graph < launch.start_ns) {
            std::int64_t began = std::clamp(*graph, from, gap.end_ns);
            charge(line_.host, from, began, hint_, gap.causes);
            at(gap.causes, Cause::graph) += gap.end_ns - began;
            return;
        }
        bool is_op = launch.category == Category::op;  // stands for a call that was not recorded
        std::int64_t called = std::clamp(launch.start_ns, from, gap.end_ns);
        std::int64_t returned =
            std::clamp(is_op ? launch.start_ns : launch.end_ns(), called, gap.end_ns);
        std::int64_t rest = gap.end_ns - returned;
        bool is_late = launch.start_ns >= from;
        if (is_late && rest < kLatencyMost) {
            charge_late(gap, called);
        } else {
            charge(line_.host, from, called, hint_, gap.causes);
            at(gap.causes, Cause::latency) += returned - called;
            at(gap.causes, queued_cause(gap, launch, before, rest)) += rest;
        }
    }

    // The host came late. What it did until the call is charged; the way from the call to the GPU
    // is shared out in proportion, for it would have been hidden by an earlier call.
    void charge_late(Gap& gap, std::int64_t called) {
        CauseTimes causes = {};
        // A copy from pageable memory blocks its caller: that call is work of its own.
        bool is_copy = event(gap.next).category == Category::memcpy;
        std::int64_t until = called > gap.start_ns && !is_copy ? called : gap.end_ns;
        charge(line_.host, gap.start_ns, until, hint_, causes);
        // Fetching a batch is more than __next__: what nothing was recorded for, in a gap that is
        // mostly the loader's, is the loop around it.
        if (at(causes, Cause::input) * 2 > until - gap.start_ns)
            at(causes, Cause::input) += std::exchange(at(causes, Cause::host), 0);
        double scale =
            static_cast<double>(gap.length_ns()) / static_cast<double>(until - gap.start_ns);
        std::int64_t left = gap.length_ns();
        for (std::size_t i = 0; i < kCauses; ++i) {
            auto share = static_cast<std::int64_t>(static_cast<double>(causes[i]) * scale);
            gap.causes[i] += share;
            left -= share;
        }
        at(gap.causes, Cause::latency) += left;  // rounding
    }

    [[nodiscard]] Cause queued_cause(const Gap& gap, const Event& launch, std::int32_t before,
                                     std::int64_t rest) const {
        if (rest < kLatencyMost) return Cause::latency;
        if (is_graph_launch(trace_.name(launch))) return Cause::graph;
        if (before < 0) return Cause::unknown;
        bool other_stream = gpu(static_cast<std::size_t>(before)).lane != event(gap.next).lane;
        return other_stream || event(gap.next).category == Category::memcpy ? Cause::dependency
                                                                            : Cause::unknown;
    }

    const Trace& trace_;
    Timeline& line_;
    std::vector<std::int64_t> graphs_;
    std::size_t hint_ = 0;
};

void sum_gaps(Timeline& line) {
    StepCursor cursor(line);
    for (const Gap& gap : line.gaps) {
        std::int64_t unseen = at(gap.causes, Cause::graph) + at(gap.causes, Cause::unknown);
        for (std::size_t i = 0; i < kCauses; ++i) line.causes[i] += gap.causes[i];
        line.split.unknown_ns += unseen;
        line.split.idle_ns += gap.length_ns() - unseen;
        // A gap that two steps share is divided by length; its causes likewise.
        cursor.split(gap.start_ns, gap.end_ns, [&](Step& step, std::int64_t time) {
            double share = static_cast<double>(time) / static_cast<double>(gap.length_ns());
            auto part = [&](std::int64_t whole) {
                return static_cast<std::int64_t>(static_cast<double>(whole) * share);
            };
            for (std::size_t i = 0; i < kCauses; ++i) step.causes[i] += part(gap.causes[i]);
            step.split.unknown_ns += part(unseen);
            step.split.idle_ns += time - part(unseen);
        });
    }
    StepCursor counter(line);
    for (std::uint32_t index : line.gpu) {
        const Event& event = line.trace->events[index];
        if (event.category != Category::kernel) continue;
        counter.split(std::max(event.start_ns, line.start_ns),
                      std::max(event.start_ns, line.start_ns) + 1,
                      [](Step& step, std::int64_t) { ++step.kernels; });
    }
}

}  // namespace

std::string_view cause_key(Cause cause) {
    constexpr std::string_view kKeys[kCauses] = {
        "input",     "synchronisation", "allocator", "pause", "compile",
        "optimizer", "launch",          "python",    "host",  "dependency",
        "latency",   "graph",           "unknown"};
    return kKeys[static_cast<std::size_t>(cause)];
}

std::string_view cause_text(Cause cause) {
    constexpr std::string_view kTexts[kCauses] = {"waiting for data",
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
                                                  "no launch recorded"};
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
    return lengths.size() % 2 ? lengths[middle] : (lengths[middle - 1] + lengths[middle]) / 2;
}

Timeline make_timeline(const Trace& trace) {
    Timeline line;
    line.trace = &trace;
    choose_device(trace, line);
    Launches launches(trace);
    choose_window(trace, launches, line);
    collect_gpu(trace, launches, line);
    line.host = host_activities(trace, line.host_lanes, line.start_ns, line.end_ns);
    split_busy(trace, line);
    if (line.device >= 0) {
        GapJudge(trace, line).judge();
        sum_gaps(line);
    } else {
        // A trace of the CPU alone: what the host did, and no word about a device.
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
    // Outwards from the event: the nearest frame before it on its thread that still covers it.
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
