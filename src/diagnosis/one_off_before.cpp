// SPDX-License-Identifier: Apache-2.0
// One-offs before the loop that only their position reveals: the first batch of new loader workers,
// and stretches in which nothing was recorded.
#include <algorithm>

#include "diagnosis/one_off.h"

namespace saturate {
namespace {

constexpr std::string_view kBlank = "nothing recorded before the first work";
constexpr std::string_view kWorkers = "the first batch of new loader workers";

// Adds the wait for the first batch of new workers: the loop waits while they make it, but later
// batches are ready in time. If the profiler marks steps, the loop was already running.
void first_batch(const Timeline& line, const IdleTimes& idle, std::vector<OneOff>& out) {
    if (line.has_steps || line.gpu.empty()) return;
    const Trace& trace = *line.trace;
    std::size_t first = trace.events.size();
    std::vector<std::int64_t> later;
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
        const Event& one = trace.events[i];
        if (one.category != Category::annotation || one.start_ns < line.start_ns ||
            !trace.name(one).starts_with("enumerate(DataLoader)#_MultiProcessing"))
            continue;
        if (first < i)
            later.push_back(one.duration_ns);
        else
            first = i;
    }
    if (later.size() < 3) return;
    std::ranges::sort(later);
    const Event& one = trace.events[first];
    if (one.duration_ns >= 2 * kMs && one.duration_ns >= 5 * later[later.size() / 2] &&
        trace.events[line.gpu[0]].start_ns >= one.end_ns() &&
        idle.is_mostly_idle(one.start_ns, one.end_ns()))
        out.push_back({one.start_ns, one.end_ns(), Cause::startup, kWorkers,
                       static_cast<std::int32_t>(first)});
}

// Stretches of the window without any event, up to the last GPU event.
struct Blanks {
    IdleSpan longest;
    std::int64_t second_ns = 0;    // the second longest
    std::size_t works_before = 0;  // GPU events before the longest
    std::size_t works = 0;         // GPU events in all
    std::vector<IdleSpan> head;    // before all GPU work
    std::int64_t head_ns = 0;

    void add(const IdleSpan& empty) {
        if (works == 0 && empty.length_ns() >= kMs) {
            head.push_back(empty);
            head_ns += empty.length_ns();
        }
        if (empty.length_ns() > longest.length_ns()) {
            second_ns = longest.length_ns();
            longest = empty;
            works_before = works;
        } else {
            second_ns = std::max(second_ns, empty.length_ns());
        }
    }
};

Blanks find_blanks(const Timeline& line) {
    const Trace& trace = *line.trace;
    std::vector<bool> is_ours(trace.lanes.size());
    for (std::uint16_t lane : line.host_lanes) is_ours[lane] = true;
    Blanks blanks;
    std::int64_t covered = line.start_ns;
    // The time after the last GPU work is the end of the job and does not count.
    std::int64_t until =
        line.gpu.empty() ? line.end_ns : trace.events[line.gpu.back()].start_ns + 1;
    for (const Event& one : trace.events) {
        if (one.start_ns >= std::min(until, line.end_ns)) break;
        bool is_work = is_gpu(one.category);
        if (!is_work && (!is_ours[one.lane] || one.category > Category::python ||
                         trace.name(one).starts_with("ProfilerStep#")))
            continue;
        if (one.start_ns > covered) blanks.add({covered, one.start_ns});
        covered = std::max(covered, one.end_ns());
        blanks.works += is_work;
    }
    return blanks;
}

// Adds one long stretch before the work begins, or several stretches that make up half of a trace
// without steps.
void blank(const Timeline& line, std::vector<OneOff>& out) {
    if (line.trace->has_stacks) return;
    auto add = [&](const IdleSpan& one) {
        out.push_back({one.start_ns, one.end_ns, Cause::startup, kBlank, 0});
    };
    Blanks blanks = find_blanks(line);
    std::int64_t longest = blanks.longest.length_ns(), window = line.end_ns - line.start_ns;
    // Half of the trace before all work stands out without a comparison.
    bool stands_out =
        longest >= 5 * blanks.second_ns || (blanks.works_before == 0 && 2 * longest >= window);
    if (stands_out && longest >= 20 * kMs && longest * 100 >= 15 * window &&
        blanks.works_before * 100 < 15 * blanks.works)
        add(blanks.longest);
    else if (!line.has_steps && blanks.head_ns >= 20 * kMs && 2 * blanks.head_ns >= window)
        std::ranges::for_each(blanks.head, add);
}

}  // namespace

std::vector<OneOff> find_before_work(const Timeline& line, const IdleTimes& idle) {
    std::vector<OneOff> out;
    first_batch(line, idle, out);
    blank(line, out);
    return out;
}

}  // namespace saturate
