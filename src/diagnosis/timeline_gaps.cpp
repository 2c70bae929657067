// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "diagnosis/host.h"
#include "diagnosis/kernels.h"
#include "diagnosis/timeline_parts.h"

namespace saturate {
namespace {

constexpr std::int64_t kLatencyMost = 10'000;  // between a launch and the start of its kernel

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

    // The host came late. What it did until the call is charged. The way from the call to the GPU
    // would have been hidden by an earlier call: it goes to what held the host when the GPU ran
    // dry.
    void charge_late(Gap& gap, std::int64_t called) {
        Cause first = activity_at(line_.host, gap.start_ns, hint_);
        // A copy from pageable memory blocks its caller: that call is work of its own.
        bool is_copy = event(gap.next).category == Category::memcpy;
        std::int64_t until = called > gap.start_ns && !is_copy ? called : gap.end_ns;
        charge(line_.host, gap.start_ns, until, hint_, gap.causes);
        at(gap.causes, first) += gap.end_ns - until;
        // Fetching a batch is more than __next__: what nothing was recorded for, in a gap that is
        // mostly the loader's, is the loop around it.
        if (at(gap.causes, Cause::input) * 2 > gap.length_ns())
            at(gap.causes, Cause::input) += std::exchange(at(gap.causes, Cause::host), 0);
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

void judge_gaps(Timeline& line) {
    GapJudge(*line.trace, line).judge();
    sum_gaps(line);
}

}  // namespace saturate
