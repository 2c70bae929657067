// SPDX-License-Identifier: Apache-2.0
// F06-F09: the host waits for the GPU, or for memory, and the GPU then waits for the host.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "diagnosis/context.h"
#include "diagnosis/host.h"

namespace saturate {
namespace {

ReplayChange unblocking(const std::vector<std::uint32_t>& calls) {
    ReplayChange change;
    change.unblock = [calls](std::uint32_t event) {
        return std::ranges::binary_search(calls, event);
    };
    return change;
}

// Three examples from different lines of the user's code where that is known.
void add_examples(const Context& context, const std::vector<std::uint32_t>& events,
                  Finding& finding) {
    for (std::size_t i = 0; i < events.size() && i < 400 && finding.examples.size() < 3; ++i) {
        Example one = context.example(events[i]);
        bool is_new = std::ranges::none_of(finding.examples, [&](const Example& other) {
            return other.source == one.source && other.text == one.text;
        });
        if (is_new) finding.examples.push_back(one);
    }
}

struct Waits {
    std::vector<std::uint32_t> reads;     // calls inside item(), nonzero() ...
    std::vector<std::uint32_t> read_ops;  // those operators
    std::vector<std::uint32_t> explicit_ones;
    std::vector<std::uint32_t> to_host;  // calls of pageable copies to the host, outside of reads
    std::int64_t to_host_all = 0;
};

Waits find_waits(const Context& context) {
    Waits waits;
    HostCauses causes(context.trace);
    std::vector<bool> is_ours(context.trace.lanes.size());
    for (std::uint16_t lane : context.line.host_lanes) is_ours[lane] = true;
    std::int64_t last_sync = -1;
    for (std::size_t i = 0; i < context.trace.events.size(); ++i) {
        const Event& event = context.event(i);
        if (event.category != Category::runtime || !is_ours[event.lane]) continue;
        if (event.start_ns < context.line.start_ns || event.start_ns >= context.line.end_ns)
            continue;
        if (causes.of(i) != Cause::sync) continue;
        auto index = static_cast<std::uint32_t>(i);
        std::string_view name = context.trace.name(event);
        if (context.inside[i] & kInsideRead) {
            waits.reads.push_back(index);
            auto op = static_cast<std::uint32_t>(context.read_op[i]);
            if (waits.read_ops.empty() || waits.read_ops.back() != op) waits.read_ops.push_back(op);
        } else if (name.ends_with("DeviceSynchronize") || name.ends_with("EventSynchronize") ||
                   (name.ends_with("StreamSynchronize") && !(context.inside[i] & kInsideOp))) {
            waits.explicit_ones.push_back(index);
            if (name.ends_with("DeviceSynchronize")) last_sync = index;
        }
    }
    // The profiler's own, at the very end.
    if (last_sync >= 0 && !waits.explicit_ones.empty() &&
        waits.explicit_ones.back() == static_cast<std::uint32_t>(last_sync))
        waits.explicit_ones.pop_back();
    for (std::size_t i = 0; i < context.line.gpu.size(); ++i) {
        const Event& copy = context.event(context.line.gpu[i]);
        if (copy.category != Category::memcpy || context.line.launch_of[i] < 0) continue;
        if (context.trace.name(copy).find("DtoH (Device -> Pageable") == std::string_view::npos)
            continue;
        ++waits.to_host_all;
        if (!(context.launch_inside(i) & kInsideRead))
            waits.to_host.push_back(static_cast<std::uint32_t>(context.line.launch_of[i]));
    }
    std::ranges::sort(waits.to_host);
    return waits;
}

void reading_values(Context& context, const Waits& waits) {
    if (waits.read_ops.size() < 2) return;
    std::map<std::string_view, int> by_name;
    for (std::uint32_t op : waits.read_ops) ++by_name[context.trace.name(context.event(op))];
    std::string names;
    for (const auto& [name, count] : by_name)
        names += fmt::format("{}{} {}", names.empty() ? "" : ", ", count, name);
    Finding finding{.id = "F06", .count = static_cast<std::int64_t>(waits.read_ops.size())};
    finding.confidence = Confidence::high;
    finding.evidence = fmt::format(
        "{} wait for the GPU ({:.0f} per step); it idles until the host has launched again", names,
        context.per_step(finding.count));
    finding.settings = {{"log_interval", "50"}};
    add_examples(context, waits.read_ops, finding);
    if (!context.trace.has_stacks)
        finding.surer = "with_stack=True names the lines that read the values";
    context.add(finding, unblocking(waits.reads), idle_after(context.line, waits.reads));
}

void explicit_waits(Context& context, const Waits& waits) {
    if (waits.explicit_ones.empty()) return;
    Finding finding{.id = "F07", .count = static_cast<std::int64_t>(waits.explicit_ones.size())};
    finding.evidence = fmt::format("{} calls of {} ({:.1f} per step)", finding.count,
                                   context.trace.name(context.event(waits.explicit_ones[0])),
                                   context.per_step(finding.count));
    add_examples(context, waits.explicit_ones, finding);
    context.add(finding, unblocking(waits.explicit_ones),
                idle_after(context.line, waits.explicit_ones));
}

// A copy to pageable memory is a call that blocks and, in PyTorch, a stream synchronisation behind
// it.
void copies_to_host(Context& context, const Waits& waits) {
    if (context.per_step(waits.to_host_all) <= 4 || waits.to_host.empty()) return;
    std::vector<std::uint32_t> calls = waits.to_host;
    for (std::size_t i = 0, at = 0; i < context.trace.events.size() && at < waits.to_host.size();
         ++i) {
        if (i <= waits.to_host[at]) continue;
        const Event& event = context.event(i);
        if (event.category != Category::runtime ||
            event.lane != context.event(waits.to_host[at]).lane)
            continue;
        if (context.trace.name(event).ends_with("StreamSynchronize"))
            calls.push_back(static_cast<std::uint32_t>(i));
        ++at;
    }
    std::ranges::sort(calls);
    Finding finding{.id = "F08", .count = waits.to_host_all};
    finding.evidence = fmt::format(
        "{} copies to pageable host memory ({:.0f} per step), {} of them outside of item() and the "
        "like",
        waits.to_host_all, context.per_step(waits.to_host_all), waits.to_host.size());
    add_examples(context, waits.to_host, finding);
    context.add(finding, unblocking(calls), idle_after(context.line, calls));
}

void allocations(Context& context) {
    std::int64_t exposed = at(context.line.causes, Cause::allocator);
    std::vector<std::uint32_t> calls;
    std::int64_t host = 0;
    std::map<std::string_view, int> by_name;
    for (std::size_t i = 0; i < context.trace.events.size(); ++i) {
        const Event& event = context.event(i);
        if (event.category != Category::runtime || event.start_ns < context.line.start_ns ||
            event.start_ns >= context.line.end_ns || !is_allocating(context.trace.name(event)))
            continue;
        calls.push_back(static_cast<std::uint32_t>(i));
        ++by_name[context.trace.name(event)];
        host += event.duration_ns;
    }
    if (calls.empty() || (context.percent(host) < 1 &&
                          context.per_step(static_cast<std::int64_t>(calls.size())) <= 2))
        return;
    if (context.percent(exposed) < 1) return;
    std::string names;
    for (const auto& [name, count] : by_name)
        names += fmt::format("{}{} {}", names.empty() ? "" : ", ", count, name);
    Finding finding{.id = "F09", .count = static_cast<std::int64_t>(calls.size())};
    finding.confidence = context.percent(exposed) >= 5 ? Confidence::high : Confidence::medium;
    finding.evidence =
        fmt::format("{}: {:.0f} ms of the host, {:.1f} % of the window idle behind them", names,
                    static_cast<double>(host) / 1e6, context.percent(exposed));
    finding.settings = {{"expandable_segments", "true"}};
    std::ranges::sort(calls, std::greater<>(),
                      [&](std::uint32_t call) { return context.event(call).duration_ns; });
    add_examples(context, calls, finding);
    ReplayChange change;
    change.scale(Cause::allocator) = 0.02;
    std::ranges::sort(calls);
    change.unblock = [calls](std::uint32_t event) {
        return std::ranges::binary_search(calls, event);
    };
    context.add(finding, change, exposed);
}

}  // namespace

void find_synchronisation(Context& context) {
    Waits waits = find_waits(context);
    reading_values(context, waits);
    explicit_waits(context, waits);
    copies_to_host(context, waits);
    allocations(context);
}

}  // namespace saturate
