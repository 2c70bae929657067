// SPDX-License-Identifier: Apache-2.0
// Finds the steady part of a trace, which a longer run repeats: drops a head with foreign work,
// finds the one-offs, and starts later or cuts them out if they take much of the time.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "diagnosis/kernels.h"
#include "diagnosis/one_off.h"
#include "diagnosis/timeline_parts.h"

namespace saturate {
namespace {

constexpr double kTellFrom = 25;  // one-offs are cut out from this percentage of the window on

void add_left_out(SteadyPart& steady, std::string kind, std::int64_t ns) {
    if (ns <= 0) return;
    auto same = std::ranges::find(steady.left_out, kind, &UnsteadyTime::kind);
    if (same != steady.left_out.end())
        same->ns += ns;
    else
        steady.left_out.push_back({std::move(kind), ns});
}

// Moves the start of the window; `steps` are the steps that remain.
void narrow(Timeline& line, std::int64_t start, std::vector<Step> steps) {
    const Trace& trace = *line.trace;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < line.gpu.size(); ++i) {
        if (trace.events[line.gpu[i]].end_ns() <= start) continue;
        line.gpu[kept] = line.gpu[i];
        line.launch_of[kept++] = line.launch_of[i];
    }
    line.gpu.resize(kept);
    line.launch_of.resize(kept);
    line.start_ns = start;
    line.steps = std::move(steps);
    line.has_steps = !line.steps.empty();
    if (line.has_steps && kept > 0) {
        std::int64_t end = line.steps.back().end_ns;
        for (std::uint32_t index : line.gpu) end = std::max(end, trace.events[index].end_ns());
        end = std::min(end, line.end_ns);
        add_left_out(line.steady, "behind the last step", line.end_ns - end);
        line.end_ns = end;
    }
    if (!line.has_steps)
        line.steps.push_back({start, line.end_ns, "the steady part", {}, {}, 0, 0});
}

// Returns the end of a call that waits for the GPU during at least half of the gap, although the
// GPU does nothing that was recorded, or 0.
std::int64_t waited_in(const Timeline& line, const IdleSpan& gap) {
    const Trace& trace = *line.trace;
    std::int64_t end = 0;
    auto from = std::ranges::lower_bound(trace.events, gap.start_ns, {}, &Event::start_ns);
    for (; from != trace.events.end() && from->start_ns < gap.end_ns; ++from) {
        if (from->category != Category::runtime || from->duration_ns < kMs) continue;
        if (std::ranges::find(line.host_lanes, from->lane) == line.host_lanes.end()) continue;
        std::int64_t part = std::min(from->end_ns(), gap.end_ns) - from->start_ns;
        if (part >= kMs && 2 * part >= gap.length_ns() &&
            trace.name(*from).ends_with("Synchronize"))
            end = std::max(end, from->start_ns + part);
    }
    return end;
}

// True if the host is in long calls that do not wait for the GPU, such as loading a kernel, during
// at least half of the gap. Such a call keeps the GPU from starting work launched before it.
bool is_held_up(const Timeline& line, const IdleSpan& gap) {
    const Trace& trace = *line.trace;
    std::int64_t held = 0, covered = gap.start_ns;
    for (const Event& one : trace.events) {
        if (one.start_ns >= gap.end_ns) break;
        if (one.category != Category::runtime || one.duration_ns < kMs || one.end_ns() <= covered ||
            is_synchronising(trace.name(one)) ||
            trace.name(one).find("Memcpy") != std::string_view::npos ||
            std::ranges::find(line.host_lanes, one.lane) == line.host_lanes.end())
            continue;
        std::int64_t until = std::min(one.end_ns(), gap.end_ns);
        held += until - std::max(one.start_ns, covered);
        covered = until;
    }
    return 2 * held >= gap.length_ns();
}

// In a trace that was cut out of a longer run, the first kernel waits long after its launch,
// because the GPU still runs work that the trace does not hold. Returns the end of that gap, or the
// start of the window.
std::int64_t head_end(const Timeline& line, const IdleTimes& idle) {
    const Trace& trace = *line.trace;
    std::int64_t all = line.end_ns - line.start_ns - idle.within(line.start_ns, line.end_ns);
    std::int64_t head = line.start_ns;
    std::size_t next = 0;
    for (const IdleSpan& gap : idle.spans()) {
        std::int64_t work = gap.start_ns - line.start_ns - idle.within(line.start_ns, gap.start_ns);
        if (work * 50 > all) break;
        while (next < line.gpu.size() && trace.events[line.gpu[next]].start_ns < gap.end_ns) ++next;
        if (next >= line.gpu.size()) break;
        head = std::max(head, waited_in(line, gap));
        std::int32_t launch = line.launch_of[next];
        if (launch < 0) continue;
        const Event& call = trace.events[static_cast<std::size_t>(launch)];
        if (call.category != Category::runtime) continue;
        std::int64_t queued = gap.end_ns - call.end_ns();
        if (std::min(queued, gap.length_ns()) >= kMs && 2 * queued >= gap.length_ns() &&
            !is_held_up(line, gap))
            head = gap.end_ns;
    }
    return head;
}

void drop_head(Timeline& line) {
    std::int64_t start = head_end(line, IdleTimes(line));
    line.steady.head_ns = start - line.start_ns;
    if (line.steady.head_ns <= 0) return;
    add_left_out(line.steady, std::string(kBeforeOwnWork), line.steady.head_ns);
    std::vector<Step> steps;
    for (Step& step : line.steps) {
        if (step.end_ns <= start || !line.has_steps) continue;
        step.start_ns = std::max(step.start_ns, start);
        steps.push_back(step);
    }
    narrow(line, start, std::move(steps));
}

// Drops the end of the program: after the last GPU work, with nothing recorded but calls that give
// things back. Operators, ranges or Python frames there are the job's own work.
void drop_tail(Timeline& line) {
    if (line.has_steps || line.gpu.empty()) return;
    const Trace& trace = *line.trace;
    std::int64_t done = line.start_ns;
    for (std::uint32_t index : line.gpu) done = std::max(done, trace.events[index].end_ns());
    std::int64_t tail = line.end_ns - done;
    if (tail < kMs || 4 * tail < line.end_ns - line.start_ns) return;
    std::int64_t own = 0, covered = done;
    for (const Event& event : trace.events) {
        if (event.category != Category::op && event.category != Category::annotation &&
            event.category != Category::python)
            continue;
        if (event.end_ns() <= covered) continue;
        own += event.end_ns() - std::max(event.start_ns, covered);
        covered = event.end_ns();
    }
    if (10 * own > tail) return;
    add_left_out(line.steady, std::string(kAfterWork), tail);
    line.end_ns = done;
    line.steps.back().end_ns = done;
}

// Returns the idle part of the one-offs, without overlap.
std::vector<Activity> idle_one_offs(const std::vector<OneOff>& all, const IdleTimes& idle,
                                    std::map<std::string_view, std::int64_t>& by_kind) {
    std::vector<OneOff> ordered = all;
    std::ranges::stable_sort(ordered, [](const OneOff& a, const OneOff& b) {
        return a.cause != b.cause ? a.cause < b.cause : a.start_ns < b.start_ns;
    });
    std::vector<Activity> out;  // by start, without overlap
    for (const OneOff& one : ordered) {
        auto span = std::ranges::upper_bound(idle.spans(), one.start_ns, {}, &IdleSpan::end_ns);
        std::vector<Activity> pieces;
        for (; span != idle.spans().end() && span->start_ns < one.end_ns; ++span) {
            std::int64_t from = std::max(span->start_ns, one.start_ns);
            std::int64_t to = std::min(span->end_ns, one.end_ns);
            auto other = std::ranges::upper_bound(out, from, {}, &Activity::end_ns);
            for (; other != out.end() && other->start_ns < to; ++other) {
                if (other->start_ns > from)
                    pieces.push_back({from, other->start_ns, one.cause, one.event});
                from = std::max(from, other->end_ns);
            }
            if (to > from) pieces.push_back({from, to, one.cause, one.event});
        }
        for (const Activity& piece : pieces) by_kind[one.kind] += piece.end_ns - piece.start_ns;
        if (pieces.empty()) continue;
        out.insert(out.end(), pieces.begin(), pieces.end());
        std::ranges::sort(out, {}, &Activity::start_ns);
    }
    return out;
}

// Removes the end of the job after the last GPU work: drops a last step without work, and shortens
// the last step if more than a step's length follows the work.
std::vector<Step> without_end(const Timeline& line, std::vector<Step> steps) {
    if (steps.size() < 4) return steps;
    std::int64_t done = 0;
    for (std::uint32_t index : line.gpu) done = std::max(done, line.trace->events[index].end_ns());
    if (done <= steps.back().start_ns) {
        steps.pop_back();
        return steps;
    }
    std::int64_t usual = (steps.back().start_ns - steps.front().start_ns) /
                         static_cast<std::int64_t>(steps.size() - 1);
    if (line.end_ns - done > usual) steps.back().end_ns = done;
    return steps;
}

// Divides the time after `from` into steps, by the marks of the loader or the optimizer. Returns no
// steps if there are fewer than three.
std::vector<Step> steps_by_marks(const Timeline& line, std::int64_t from) {
    const Trace& trace = *line.trace;
    auto collect = [&](std::string_view mark, bool at_end) {
        std::vector<Step> out;
        const Event* first = nullptr;
        for (const Event& event : trace.events) {
            if (event.category != Category::annotation || trace.lane(event).gpu ||
                !trace.name(event).starts_with(mark))
                continue;
            std::int64_t time = at_end ? event.end_ns() : event.start_ns;
            if (time < from || time >= line.end_ns) continue;
            if (!first) first = &event;
            if (event.name != first->name || event.lane != first->lane) continue;
            if (!out.empty()) out.back().end_ns = time;
            out.push_back({time, line.end_ns, std::string(trace.name(event)), {}, {}, 0, 0});
        }
        if (at_end && out.size() > 1) out.pop_back();  // no step follows the last optimizer step
        if (out.empty()) return out;
        out.back().end_ns = line.end_ns;
        return without_end(line, std::move(out));
    };
    std::vector<Step> steps = collect("enumerate(DataLoader)#", false);
    if (steps.size() < 3) steps = collect("Optimizer.step#", true);
    return steps.size() < 3 ? std::vector<Step>() : steps;
}

std::size_t kernels_from(const Timeline& line, std::int64_t from) {
    return static_cast<std::size_t>(std::ranges::count_if(line.gpu, [&](std::uint32_t index) {
        const Event& event = line.trace->events[index];
        return event.category == Category::kernel && event.start_ns >= from;
    }));
}

// Starts the window after the last one-off of at least 2 ms (or recording) if a third of the
// kernels remain. Returns false if it does not.
bool start_later(Timeline& line) {
    std::int64_t last = line.start_ns;
    for (const Activity& one : line.one_offs) {
        if (one.cause == Cause::recording || one.end_ns - one.start_ns >= 2 * kMs)
            last = std::max(last, one.end_ns);
    }
    std::vector<Step> steps;
    bool is_marked = line.has_steps && line.steps[0].name.starts_with("ProfilerStep#");
    std::int64_t start = last;
    if (is_marked) {
        for (const Step& step : line.steps) {
            if (step.start_ns >= last) steps.push_back(step);
        }
        if (steps.empty()) return false;
        start = steps[0].start_ns;
    } else {
        steps = steps_by_marks(line, last);
        if (!steps.empty()) start = steps[0].start_ns;
    }
    if (start <= line.start_ns || 3 * kernels_from(line, start) < kernels_from(line, line.start_ns))
        return false;
    narrow(line, start, std::move(steps));
    return true;
}

// Takes allocations out of the one-offs, so that they count as allocations. Called if too little
// happens once to leave it out.
void keep_allocations(Timeline& line) {
    const Trace& trace = *line.trace;
    std::vector<bool> is_ours(trace.lanes.size());
    for (std::uint16_t lane : line.host_lanes) is_ours[lane] = true;
    std::vector<Activity> kept;
    std::size_t next = 0;
    auto before = [&](std::int64_t time) {  // keeps the parts that end before an allocation
        for (; next < line.one_offs.size() && line.one_offs[next].start_ns < time; ++next) {
            Activity& one = line.one_offs[next];
            kept.push_back(one);
            if (one.end_ns <= time) continue;
            kept.back().end_ns = time;
            one.start_ns = time;
            break;
        }
    };
    for (const Event& event : trace.events) {
        if (event.category != Category::runtime || !is_ours[event.lane] ||
            event.end_ns() <= line.start_ns || !is_allocating(trace.name(event)))
            continue;
        before(event.start_ns);
        for (; next < line.one_offs.size() && line.one_offs[next].start_ns < event.end_ns();
             ++next) {
            Activity& one = line.one_offs[next];
            if (one.end_ns <= event.end_ns()) continue;
            one.start_ns = event.end_ns();
            break;
        }
    }
    before(line.end_ns);
    line.one_offs = std::move(kept);
}

// Records the time between `began` and the new start of the window as left out.
void leave_out_before(Timeline& line, std::int64_t began) {
    std::int64_t startup = 0, recording = 0;
    for (const Activity& one : line.one_offs) {
        std::int64_t part = std::min(one.end_ns, line.start_ns) - one.start_ns;
        if (part > 0) (one.cause == Cause::recording ? recording : startup) += part;
    }
    add_left_out(line.steady, "start-up", startup);
    add_left_out(line.steady, "recording CUDA graphs", recording);
    add_left_out(line.steady, "work before the steady part",
                 line.start_ns - began - startup - recording);
    std::erase_if(line.one_offs, [&](const Activity& one) { return one.end_ns <= line.start_ns; });
}

// Excludes the one-offs in the window from its length.
void cut_out(Timeline& line) {
    std::int64_t startup = 0, recording = 0;
    for (const Activity& one : line.one_offs)
        (one.cause == Cause::recording ? recording : startup) +=
            one.end_ns - std::max(one.start_ns, line.start_ns);
    if (startup + recording == 0) return;
    line.cut = true;
    line.cut_ns = startup + recording;
    add_left_out(line.steady, "start-up", startup);
    add_left_out(line.steady, "recording CUDA graphs", recording);
    for (Step& step : line.steps) step.cut_ns = line.cut_between(step.start_ns, step.end_ns);
}

}  // namespace

void find_steady(Timeline& line) {
    SteadyPart& steady = line.steady;
    steady.whole_ns = line.end_ns - line.start_ns;
    IdleTimes whole(line);
    steady.whole_busy_ns = steady.whole_ns - whole.within(line.start_ns, line.end_ns);
    if (line.device < 0) return;
    drop_head(line);
    drop_tail(line);
    IdleTimes idle(line);
    std::vector<OneOff> found = find_one_offs(line, idle);
    if (found.empty()) return;
    std::map<std::string_view, std::int64_t> by_kind;
    line.one_offs = idle_one_offs(found, idle, by_kind);
    for (const Activity& one : line.one_offs)
        (one.cause == Cause::recording ? steady.recording_ns : steady.startup_ns) +=
            one.end_ns - one.start_ns;
    for (std::size_t i = 0; i < line.one_offs.size(); ++i) {
        const Activity& one = line.one_offs[i];
        bool is_new =
            one.cause == Cause::recording && (i == 0 || line.one_offs[i - 1].event != one.event);
        steady.recordings += is_new;
    }
    std::vector<std::pair<std::int64_t, std::string_view>> kinds;
    for (const auto& [kind, ns] : by_kind) {
        if (steady.share(ns) >= 1) kinds.emplace_back(ns, kind);
    }
    std::ranges::sort(kinds, std::greater<>());
    for (const auto& [ns, kind] : kinds) {
        if (kind == "recording CUDA graphs") continue;
        steady.startup_kinds += fmt::format(
            "{}{} {:.0f} %", steady.startup_kinds.empty() ? "" : ", ", kind, steady.share(ns));
    }
    if (steady.share(steady.startup_ns + steady.recording_ns) < kTellFrom) {
        keep_allocations(line);
        return;
    }
    std::int64_t began = line.start_ns;
    if (start_later(line)) leave_out_before(line, began);
    cut_out(line);
}

std::int64_t Timeline::cut_between(std::int64_t from, std::int64_t to) const {
    if (!cut || to <= from) return 0;
    std::int64_t sum = 0;
    auto one = std::ranges::upper_bound(one_offs, from, {}, &Activity::end_ns);
    for (; one != one_offs.end() && one->start_ns < to; ++one)
        sum += std::min(to, one->end_ns) - std::max(from, one->start_ns);
    return sum;
}

bool Timeline::is_in_one_off(const Event& event) const {
    std::int64_t sum = 0;
    auto one = std::ranges::upper_bound(one_offs, event.start_ns, {}, &Activity::end_ns);
    for (; one != one_offs.end() && one->start_ns < event.end_ns(); ++one)
        sum += std::min(event.end_ns(), one->end_ns) - std::max(event.start_ns, one->start_ns);
    return sum > 0 && 2 * sum >= event.duration_ns;
}

}  // namespace saturate
