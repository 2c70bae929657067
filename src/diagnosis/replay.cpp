// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/replay.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "diagnosis/host.h"
#include "diagnosis/kernels.h"

namespace saturate {
namespace {

constexpr std::int64_t kSlack = 2'000;        // the clocks of host and GPU may differ by this much
constexpr std::int64_t kDefaultCall = 5'000;  // of a launch, if all launches waited
constexpr std::int64_t kLongCall =
    50'000;  // a launch that takes longer waited for room in the queue

std::int64_t median(std::vector<std::int64_t> values, std::int64_t otherwise) {
    if (values.empty()) return otherwise;
    auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

ReplayChange ReplayChange::with(const ReplayChange& other) const {
    ReplayChange both = *this;
    for (std::size_t i = 0; i < kCauses; ++i) {
        double mine = host_scale[i], theirs = other.host_scale[i];
        both.host_scale[i] = mine == 1.0 ? theirs : theirs == 1.0 ? mine : std::min(mine, theirs);
    }
    if (other.gpu_scale && gpu_scale) {
        both.gpu_scale = [a = gpu_scale, b = other.gpu_scale](std::uint32_t event) {
            return std::min(a(event), b(event));
        };
    } else if (other.gpu_scale) {
        both.gpu_scale = other.gpu_scale;
    }
    if (other.call_scale && call_scale) {
        both.call_scale = [a = call_scale, b = other.call_scale](std::uint32_t event) {
            return std::min(a(event), b(event));
        };
    } else if (other.call_scale) {
        both.call_scale = other.call_scale;
    }
    if (other.unblock && unblock) {
        both.unblock = [a = unblock, b = other.unblock](std::uint32_t event) {
            return a(event) || b(event);
        };
    } else if (other.unblock) {
        both.unblock = other.unblock;
    }
    return both;
}

Replay::Replay(const Timeline& timeline) : line_(timeline) {
    collect();
    link_work();
    link_order();
    link_waits();
    unchanged_ns_ = run({});
    std::int64_t measured = line_.length_ns();
    if (measured > 0) {
        error_percent_ = std::abs(100.0 * static_cast<double>(run({}, Lags::usual) - measured) /
                                  static_cast<double>(measured));
    }
}

// Collects the calls that launch or wait, by start, each with the work that it launches.
void Replay::collect() {
    const Trace& trace = *line_.trace;
    std::vector<bool> is_ours(trace.lanes.size());
    for (std::uint16_t lane : line_.host_lanes) is_ours[lane] = true;
    struct Launched {
        std::uint32_t call;
        std::int64_t work;  // -1: the call waits and launches nothing
    };
    std::vector<Launched> launched;
    launched.reserve(line_.gpu.size());
    std::vector<std::uint32_t> orphans;  // work without a call, by start
    std::int64_t latest = -1;            // the last call seen so far
    for (std::size_t i = 0; i < line_.gpu.size(); ++i) {
        // Attach work without a known call to the last call seen before it.
        std::int64_t call = line_.launch_of[i] >= 0 ? line_.launch_of[i]
                            : latest >= 0           ? latest
                                                    : std::int64_t{line_.gpu[i]};
        latest = std::max(latest, call);
        launched.push_back({static_cast<std::uint32_t>(call), line_.gpu[i]});
        if (line_.launch_of[i] < 0) orphans.push_back(line_.gpu[i]);
    }
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
        const Event& event = trace.events[i];
        if (event.category != Category::runtime || !is_ours[event.lane]) continue;
        // A wait may begin before the window.
        if (event.end_ns() <= line_.start_ns || event.start_ns >= line_.end_ns) continue;
        if (is_synchronising(trace.name(event)))
            launched.push_back({static_cast<std::uint32_t>(i), -1});
    }
    std::ranges::sort(launched, [](const Launched& one, const Launched& other) {
        return std::tie(one.call, one.work) < std::tie(other.call, other.work);
    });
    std::vector<std::uint32_t> behind_graphs;  // GPU events after unrecorded graph nodes, by start
    for (const Gap& gap : line_.gaps) {
        if (gap.next >= 0 && at(gap.causes, Cause::graph) > 0)
            behind_graphs.push_back(static_cast<std::uint32_t>(gap.next));
    }
    KernelClasses classes(trace);
    std::map<std::uint16_t, std::uint32_t> streams;
    works_.reserve(line_.gpu.size());
    for (const Launched& one : launched) {
        if (calls_.empty() || calls_.back().event != one.call) {
            calls_.push_back(
                {.event = one.call, .first_work = static_cast<std::uint32_t>(works_.size())});
        }
        if (one.work < 0) continue;
        ++calls_.back().work_count;
        auto work_event = static_cast<std::uint32_t>(one.work);
        const Event& event = trace.events[work_event];
        auto stream = streams.emplace(event.lane, streams.size()).first->second;
        std::int64_t start = std::max(event.start_ns, line_.start_ns);
        works_.push_back({.event = work_event,
                          .stream = static_cast<std::uint32_t>(stream),
                          .duration_ns = std::min(event.end_ns(), line_.end_ns) - start,
                          .kind = static_cast<std::uint8_t>(event.category),
                          .has_launch = !std::ranges::binary_search(orphans, work_event),
                          .has_unseen = std::ranges::binary_search(behind_graphs, work_event),
                          .is_collective = event.category == Category::kernel &&
                                           classes.of(event) == KernelClass::communication});
    }
    streams_ = streams.size();
}

// Finds out why each work started when it did: because of its launch, the work before it on the
// stream, or work on another stream.
void Replay::link_work() {
    const Trace& trace = *line_.trace;
    std::vector<std::int32_t> last(streams_, -1);  // last work per stream, in order of launches
    std::int32_t latest = -1;                      // last work of all streams
    std::array<std::vector<std::int64_t>, 3> launch_lags, queue_lags;  // by kind
    struct Held {
        std::size_t work;
        bool by_launch;
    };
    std::vector<Held> held;
    for (const Call& call : calls_) {
        std::int64_t called = std::max(trace.events[call.event].start_ns, line_.start_ns);
        for (std::size_t w = call.first_work; w < call.first_work + call.work_count; ++w) {
            Work& work = works_[w];
            std::int64_t start = std::max(trace.events[work.event].start_ns, line_.start_ns);
            auto end_of = [&](std::int32_t other) {
                return trace.events[works_[static_cast<std::size_t>(other)].event].end_ns();
            };
            std::int32_t before = last[work.stream];
            std::int64_t queue = before >= 0 ? std::min(end_of(before), start) : line_.start_ns;
            // Look for work on another stream that ended just before this one started.
            for (std::size_t s = 0; s < last.size(); ++s) {
                if (s == work.stream || last[s] < 0) continue;
                std::int64_t end = end_of(last[s]);
                if (end > start + kSlack || end <= queue + 10'000 || end < called) continue;
                if (start - end > 20'000) continue;
                queue = std::min(end, start);
                work.after = last[s];
            }
            // The other ranks do not come sooner because this one does, so a collective keeps its
            // distance to the work launched last before it.
            if (work.is_collective && work.after < 0 && latest >= 0 &&
                latest != last[work.stream] && end_of(latest) <= start && end_of(latest) > queue) {
                queue = end_of(latest);
                work.after = latest;
            }
            bool by_launch = called >= queue;
            work.launch_lag =
                std::max<std::int64_t>(start - called - line_.cut_between(called, start), 0);
            work.queue_lag =
                std::max<std::int64_t>(start - queue - line_.cut_between(queue, start), 0);
            if (work.has_launch && !work.has_unseen)
                (by_launch ? launch_lags : queue_lags)[work.kind].push_back(
                    by_launch ? work.launch_lag : work.queue_lag);
            held.push_back({w, by_launch});
            last[work.stream] = static_cast<std::int32_t>(w);
            latest = static_cast<std::int32_t>(w);
        }
    }
    // Only the lag that held the work could be measured; use the usual value for the other one.
    for (std::size_t kind = 0; kind < 3; ++kind) {
        usual_launch_[kind] = median(launch_lags[kind], kDefaultCall);
        usual_queue_[kind] = median(queue_lags[kind], 1'000);
    }
    for (const Held& one : held) {
        Work& work = works_[one.work];
        if (one.by_launch && work.is_collective) {
            // The other ranks held it too, except for the time that they are known to have waited.
            auto known = std::ranges::lower_bound(line_.awaited, work.event, {},
                                                  &std::pair<std::uint32_t, std::int64_t>::first);
            if (known != line_.awaited.end() && known->first == work.event)
                work.queue_lag = std::max(std::min(work.queue_lag, usual_queue_[work.kind]),
                                          work.queue_lag - known->second);
            continue;
        }
        if (one.by_launch)
            work.queue_lag = std::min(work.queue_lag, usual_queue_[work.kind]);
        else
            work.launch_lag = std::min(work.launch_lag, usual_launch_[work.kind]);
    }
}

Replay::Span Replay::span_of(const Call& call) const {
    const Event& event = line_.trace->events[call.event];
    std::int64_t start = std::clamp(event.start_ns, line_.start_ns, line_.end_ns);
    // An operator stands for a call that was not recorded and takes no time itself.
    bool is_call = event.category == Category::runtime;
    return {start, is_call ? std::clamp(event.end_ns(), start, line_.end_ns) : start};
}

// Finds out what the host did between the calls. Each call follows the last one that had returned
// when it began.
void Replay::link_order() {
    const Trace& trace = *line_.trace;
    HostCauses causes(trace);
    std::size_t hint = 0;
    auto add_parts = [&](std::int64_t from, std::int64_t to, std::vector<Part>& parts) {
        CauseTimes times = {};
        if (to > from) charge(line_.host, from, to, hint, times);
        for (std::size_t i = 0; i < kCauses; ++i) {
            auto cause = static_cast<Cause>(i);
            if (times[i] > 0 && !(line_.cut && is_one_off(cause)))
                parts.push_back({cause, times[i]});
        }
    };
    std::int64_t end_before = line_.start_ns;
    std::int32_t before = -1;                                 // the call that returned at that time
    std::vector<std::pair<std::int64_t, std::int32_t>> open;  // calls not returned yet, by end
    for (std::size_t c = 0; c < calls_.size(); ++c) {
        Call& call = calls_[c];
        auto [start, end] = span_of(call);
        while (!open.empty() && open.front().first <= start) {
            std::tie(end_before, before) = open.front();
            std::ranges::pop_heap(open, std::greater<>());
            open.pop_back();
        }
        open.emplace_back(end, static_cast<std::int32_t>(c));
        std::ranges::push_heap(open, std::greater<>());
        call.before = before;
        call.first_part = static_cast<std::uint32_t>(parts_.size());
        add_parts(end_before, start, parts_);
        call.part_count = static_cast<std::uint32_t>(parts_.size()) - call.first_part;
        call.own_ns = end - start - line_.cut_between(start, end);
        bool is_call = trace.events[call.event].category == Category::runtime;
        call.cause = is_call ? causes.of(call.event) : Cause::launch;
        if (is_call && line_.is_in_one_off(trace.events[call.event])) call.cause = Cause::startup;
    }
    if (!open.empty()) std::tie(end_before, tail_call_) = *std::ranges::max_element(open);
    // Without step marks, the host ends with its last recorded activity; the GPU may run longer.
    std::int64_t host_end = line_.start_ns;
    for (const Step& step : line_.steps) host_end = std::max(host_end, step.end_ns);
    if (!line_.has_steps) host_end = line_.host.empty() ? end_before : line_.host.back().end_ns;
    if (host_end > end_before) add_parts(end_before, host_end, tail_parts_);
}

// Finds out which calls wait, and for which work: of the work launched so far, the one that ended
// last.
void Replay::link_waits() {
    const Trace& trace = *line_.trace;
    auto end_of = [&](std::size_t work) { return trace.events[works_[work].event].end_ns(); };
    std::vector<std::int64_t> usual, tails, copy_tails;
    for (const Call& call : calls_) {
        const Event& event = trace.events[call.event];
        if (event.category == Category::runtime && event.duration_ns < kLongCall &&
            call.work_count > 0)
            usual.push_back(event.duration_ns);
    }
    std::int64_t usual_call = median(usual, kDefaultCall);
    std::int32_t latest = -1;
    std::size_t works_seen = 0;
    std::vector<std::pair<std::int64_t, std::int32_t>> pending;  // ends of works launched so far
    for (Call& call : calls_) {
        auto [start, end] = span_of(call);
        bool own_only = call.work_count > 0 && call.cause == Cause::sync;  // a blocking copy
        for (; works_seen < call.first_work + call.work_count; ++works_seen) {
            pending.emplace_back(end_of(works_seen), static_cast<std::int32_t>(works_seen));
            std::ranges::push_heap(pending, std::greater<>());
        }
        while (!pending.empty() && pending.front().first <= end + kSlack) {
            latest = pending.front().second;
            std::ranges::pop_heap(pending, std::greater<>());
            pending.pop_back();
        }
        bool may_wait = call.cause == Cause::sync || call.cause == Cause::allocator ||
                        (call.own_ns > kLongCall && pending.size() > 200);
        std::int32_t awaited = latest;
        if (own_only) awaited = static_cast<std::int32_t>(call.first_work + call.work_count - 1);
        if (!may_wait || awaited < 0) continue;
        std::int64_t over = end_of(static_cast<std::size_t>(awaited));
        // A copy from pageable memory returns when its last piece is staged, a little before it
        // ends on the GPU. The tail is then negative.
        std::int64_t slack = own_only ? 100'000 + call.own_ns / 4 : kSlack;
        if (over <= start || over > end + slack) continue;
        call.waits_for = awaited;
        call.tail_ns = own_only ? end - over : std::max<std::int64_t>(end - over, 0);
        call.tail_ns -= line_.cut_between(over, end);
        call.own_ns = std::min(call.own_ns, usual_call);
        (own_only ? copy_tails : tails).push_back(call.tail_ns);
    }
    usual_tail_ = median(tails, 0);
    usual_copy_tail_ = median(copy_tails, 0);
}

std::int64_t Replay::run(const ReplayChange& change, Lags lags) const {
    std::vector<std::int64_t> stream_end(streams_, 0);
    std::vector<std::int64_t> work_end(works_.size(), 0);
    std::vector<std::int64_t> call_end(calls_.size(), 0);
    std::int64_t last_end = 0;
    auto scaled = [&](const Part& part, double call_scale = 1.0) {
        double scale = change.host_scale[static_cast<std::size_t>(part.cause)];
        if (part.cause >= Cause::optimizer) scale *= call_scale;
        return scale == 1.0 ? part.ns
                            : static_cast<std::int64_t>(static_cast<double>(part.ns) * scale);
    };
    auto end_of = [&](std::int32_t call) {
        return call >= 0 ? call_end[static_cast<std::size_t>(call)] : 0;
    };
    for (std::size_t c = 0; c < calls_.size(); ++c) {
        const Call& call = calls_[c];
        double call_scale = change.call_scale ? change.call_scale(call.event) : 1.0;
        std::int64_t start = end_of(call.before);
        for (std::uint32_t i = 0; i < call.part_count; ++i)
            start += scaled(parts_[call.first_part + i], call_scale);
        for (std::size_t w = call.first_work; w < call.first_work + call.work_count; ++w) {
            const Work& work = works_[w];
            double scale = change.gpu_scale ? change.gpu_scale(work.event) : 1.0;
            std::int64_t free_at = stream_end[work.stream];
            if (work.after >= 0)
                free_at = std::max(free_at, work_end[static_cast<std::size_t>(work.after)]);
            bool is_usual = lags == Lags::usual && work.has_launch && !work.has_unseen;
            std::int64_t launched = start + (is_usual ? usual_launch_[work.kind] : work.launch_lag);
            std::int64_t queue_lag = is_usual ? usual_queue_[work.kind] : work.queue_lag;
            // A collective that is merged into another one no longer waits for the other ranks.
            if (work.is_collective && call_scale < 1.0)
                queue_lag = std::min(queue_lag, usual_queue_[work.kind]);
            std::int64_t queued = free_at + queue_lag;
            std::int64_t length =
                scale == 1.0
                    ? work.duration_ns
                    : static_cast<std::int64_t>(static_cast<double>(work.duration_ns) * scale);
            work_end[w] = scale <= 0 ? free_at : std::max(launched, queued) + length;
            stream_end[work.stream] = work_end[w];
            last_end = std::max(last_end, work_end[w]);
        }
        std::int64_t end = start + scaled({call.cause, call.own_ns}, call_scale);
        if (call.waits_for >= 0 && !(change.unblock && change.unblock(call.event))) {
            std::int64_t tail = lags == Lags::seen    ? call.tail_ns
                                : call.work_count > 0 ? usual_copy_tail_
                                                      : usual_tail_;
            end = std::max(end, work_end[static_cast<std::size_t>(call.waits_for)] + tail);
        }
        call_end[c] = end;
        last_end = std::max(last_end, end);
    }
    std::int64_t tail_end = end_of(tail_call_);
    for (const Part& part : tail_parts_) tail_end += scaled(part);
    return std::max(tail_end, last_end);
}

double Replay::gain(const ReplayChange& change) const {
    std::int64_t changed = run(change);
    if (changed <= 0 || unchanged_ns_ <= 0) return 1.0;
    return std::max(1.0, static_cast<double>(unchanged_ns_) / static_cast<double>(changed));
}

}  // namespace saturate
