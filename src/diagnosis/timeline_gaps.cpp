// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "diagnosis/host.h"
#include "diagnosis/kernels.h"
#include "diagnosis/timeline_parts.h"

namespace saturate {
namespace {

// Limits, in ns, of the usual latency between a launch and the start of its kernel.
constexpr std::int64_t kLatencyLeast = 10'000, kLatencyMost = 100'000;
// In ns. A waiting call of an idle GPU returns at once, so a wait of kLongWait is suspicious.
constexpr std::int64_t kLongWait = 1'000'000, kSoon = 20'000;

// Returns the launches of graphs whose nodes were not recorded, by start.
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

// Charges every gap to its causes. The rules apply in the order of the code.
class GapJudge {
  public:
    GapJudge(const Trace& trace, Timeline& line)
        : trace_(trace), line_(line), graphs_(unseen_graphs(trace, line)) {}

    void judge() {
        learn_latency();
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
            doubt_waits(gap);
        }
    }

  private:
    [[nodiscard]] const Event& gpu(std::size_t at) const { return trace_.events[line_.gpu[at]]; }
    [[nodiscard]] const Event& event(std::int32_t index) const {
        return trace_.events[static_cast<std::size_t>(index)];
    }

    // Drivers differ: a kernel starts 2 us after its call returned, or 20. The usual latency is
    // visible if the launch came after the GPU had become idle. With a driver that sends launches
    // in batches, the first launch of a batch waits far longer each time.
    void learn_latency() {
        std::vector<std::int64_t> lags, rests;  // after late launches; after all launches
        std::size_t next = 0;
        for (const Gap& gap : line_.gaps) {
            while (next < line_.gpu.size() && gpu(next).start_ns < gap.end_ns) ++next;
            if (next >= line_.gpu.size()) break;
            if (line_.launch_of[next] < 0) continue;
            const Event& launch = event(line_.launch_of[next]);
            if (launch.category != Category::runtime || launch.end_ns() > gap.end_ns) continue;
            if (launch.start_ns >= gap.start_ns) lags.push_back(gap.end_ns - launch.end_ns());
            rests.push_back(gap.end_ns - std::max(gap.start_ns, launch.end_ns()));
        }
        if (lags.empty()) return;
        auto middle = lags.begin() + static_cast<std::ptrdiff_t>(lags.size() / 2);
        std::ranges::nth_element(lags, middle);
        latency_ = std::clamp(2 * *middle, kLatencyLeast, kLatencyMost);
        constexpr std::ptrdiff_t kAgain = 5;
        sends_batches_ = std::ranges::count_if(rests, [&](std::int64_t rest) {
                             return rest >= std::max(latency_, kSoon) && rest < kLongWait;
                         }) >= kAgain;
    }

    void judge(Gap& gap, std::int32_t before) {
        std::int64_t from = past_one_offs(gap);
        if (gap.next < 0) {  // the tail: charge the activity of the host
            charge(line_.host, from, gap.end_ns, hint_, gap.causes);
            return;
        }
        if (gap.launch < 0) {
            at(gap.causes, Cause::unknown) += gap.end_ns - from;
            return;
        }
        const Event& launch = event(gap.launch);
        std::int32_t launch_before =
            before >= 0 ? line_.launch_of[static_cast<std::size_t>(before)] : -1;
        std::int64_t earliest = launch_before >= 0 ? event(launch_before).start_ns : from;
        // A graph without recorded nodes, launched between the two calls, ran in this gap.
        auto graph = std::ranges::upper_bound(graphs_, earliest);
        if (graph != graphs_.end() && *graph < launch.start_ns) {
            std::int64_t began = std::clamp(*graph, from, gap.end_ns);
            charge(line_.host, from, began, hint_, gap.causes);
            at(gap.causes, Cause::graph) += gap.end_ns - began;
            return;
        }
        bool is_op = launch.category == Category::op;  // it stands for a call that was not recorded
        std::int64_t called = std::clamp(launch.start_ns, from, gap.end_ns);
        std::int64_t returned =
            std::clamp(is_op ? launch.start_ns : launch.end_ns(), called, gap.end_ns);
        std::int64_t rest = gap.end_ns - returned;
        bool is_late = launch.start_ns >= from;
        if (is_late && rest < latency_) {
            charge_late(gap, from, called, returned);
        } else {
            charge(line_.host, from, called, hint_, gap.causes);
            at(gap.causes, Cause::latency) += returned - called;
            at(gap.causes, queued_cause(gap, launch, before, rest)) += rest;
        }
    }

    // Charges the one-offs in the gap and the host's activity before them. Returns where the rest
    // of the gap begins.
    std::int64_t past_one_offs(Gap& gap) {
        std::int64_t from = gap.start_ns;
        while (one_off_ < line_.one_offs.size() && line_.one_offs[one_off_].end_ns <= gap.start_ns)
            ++one_off_;
        for (; one_off_ < line_.one_offs.size() && line_.one_offs[one_off_].start_ns < gap.end_ns;
             ++one_off_)
            from = std::min(line_.one_offs[one_off_].end_ns, gap.end_ns);
        charge(line_.host, gap.start_ns, from, hint_, gap.causes);
        return from;
    }

    // If a call waits for the GPU while the GPU does nothing that was recorded, the GPU runs work
    // that was not recorded, or the call waits for another GPU. Charges that time to `unknown`.
    void doubt_waits(Gap& gap) {
        if (at(gap.causes, Cause::sync) < kLongWait) return;
        std::size_t i = hint_;
        while (i > 0 && line_.host[i - 1].end_ns > gap.start_ns) --i;
        for (; i < line_.host.size() && line_.host[i].start_ns < gap.end_ns; ++i) {
            const Activity& one = line_.host[i];
            if (one.cause != Cause::sync || one.event < 0) continue;
            const Event& call = event(one.event);
            std::int64_t part =
                std::min(one.end_ns, gap.end_ns) - std::max(one.start_ns, gap.start_ns);
            if (call.start_ns < gap.start_ns + kSoon || part < kLongWait ||
                !trace_.name(call).ends_with("Synchronize"))
                continue;
            part = std::min(part, at(gap.causes, Cause::sync));
            at(gap.causes, Cause::sync) -= part;
            at(gap.causes, Cause::unknown) += part;
        }
    }

    // The host launched late. Charges its activity until the call. The time of the call itself
    // goes to the activity at the start of the gap, because an earlier call would have overlapped
    // with GPU work. Between the return of the call and the start of the kernel, charges the next
    // activity of the host, which delays the next launch.
    void charge_late(Gap& gap, std::int64_t from, std::int64_t called, std::int64_t returned) {
        Cause first = activity_at(line_.host, from, hint_);
        // A copy from pageable memory blocks its caller, so its call is charged to itself.
        bool is_copy = event(gap.next).category == Category::memcpy;
        std::int64_t until = called > from && !is_copy ? called : gap.end_ns;
        charge(line_.host, from, until, hint_, gap.causes);
        std::int64_t on_way = std::max(until, returned);
        at(gap.causes, first) += on_way - until;
        charge(line_.host, on_way, gap.end_ns, hint_, gap.causes);
        // Fetching a batch takes more than __next__. In a gap that is mostly due to the loader,
        // time without a record is the loop around it.
        if (at(gap.causes, Cause::input) * 2 > gap.length_ns())
            at(gap.causes, Cause::input) += std::exchange(at(gap.causes, Cause::host), 0);
    }

    [[nodiscard]] Cause queued_cause(const Gap& gap, const Event& launch, std::int32_t before,
                                     std::int64_t rest) const {
        if (rest < latency_) return Cause::latency;
        if (is_graph_launch(trace_.name(launch))) return Cause::graph;
        if (before < 0) return Cause::unknown;
        bool other_stream = gpu(static_cast<std::size_t>(before)).lane != event(gap.next).lane;
        if (other_stream || event(gap.next).category == Category::memcpy) return Cause::dependency;
        return sends_batches_ && rest < kLongWait ? Cause::latency : Cause::unknown;
    }

    const Trace& trace_;
    Timeline& line_;
    std::vector<std::int64_t> graphs_;
    std::size_t hint_ = 0;
    std::size_t one_off_ = 0;  // the next in line_.one_offs
    std::int64_t latency_ = kLatencyLeast;
    bool sends_batches_ = false;
};

void sum_gaps(Timeline& line) {
    StepCursor cursor(line);
    for (const Gap& gap : line.gaps) {
        std::int64_t unseen = at(gap.causes, Cause::graph) + at(gap.causes, Cause::unknown);
        for (std::size_t i = 0; i < kCauses; ++i) {
            if (!line.cut || !is_one_off(static_cast<Cause>(i))) line.causes[i] += gap.causes[i];
        }
        std::int64_t counted = line.cut ? gap.steady_ns() : gap.length_ns();
        line.split.unknown_ns += unseen;
        line.split.idle_ns += counted - unseen;
        // Divide a gap that two steps share, and its causes, by length.
        cursor.split(gap.start_ns, gap.end_ns, [&](Step& step, std::int64_t time) {
            double share = static_cast<double>(time) / static_cast<double>(gap.length_ns());
            auto part = [&](std::int64_t whole) {
                return static_cast<std::int64_t>(static_cast<double>(whole) * share);
            };
            for (std::size_t i = 0; i < kCauses; ++i) step.causes[i] += part(gap.causes[i]);
            step.split.unknown_ns += part(unseen);
            step.split.idle_ns += part(counted - unseen);
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
