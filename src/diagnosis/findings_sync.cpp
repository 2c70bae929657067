// SPDX-License-Identifier: Apache-2.0
// F06-F09: the host waits for the GPU, or for memory, and the GPU then waits for the host.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "diagnosis/context.h"

namespace saturate {
namespace {

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

constexpr double kLeastIdle = 2.0;  // percent of the window behind a group of waits

void reading_values(Context& context) {
    const Waits& waits = context.waits;
    if (waits.read_ops.size() < 2 || context.percent(waits.reads.idle_ns) < kLeastIdle) return;
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
    context.add_waiting(finding, unblocking(waits.reads.calls), waits.reads.idle_ns);
}

void explicit_waits(Context& context) {
    const WaitGroup& group = context.waits.explicit_ones;
    if (group.calls.empty() || context.percent(group.idle_ns) < kLeastIdle) return;
    Finding finding{.id = "F07", .count = static_cast<std::int64_t>(group.calls.size())};
    finding.evidence = fmt::format("{} calls of {} ({:.1f} per step)", finding.count,
                                   context.trace.name(context.event(group.calls[0])),
                                   context.per_step(finding.count));
    add_examples(context, group.calls, finding);
    context.add_waiting(finding, unblocking(group.calls), group.idle_ns);
}

void copies_to_host(Context& context) {
    const WaitGroup& group = context.waits.to_host;
    std::int64_t all = 0;
    for (std::uint32_t index : context.line.gpu) {
        const Event& copy = context.event(index);
        all += copy.category == Category::memcpy &&
               context.trace.name(copy).find("DtoH (Device -> Pageable") != std::string_view::npos;
    }
    if (context.per_step(all) <= 4 || context.percent(group.idle_ns) < kLeastIdle) return;
    Finding finding{.id = "F08", .count = all};
    finding.evidence = fmt::format(
        "{} copies to pageable host memory ({:.0f} per step), item() and the like included", all,
        context.per_step(all));
    add_examples(context, group.calls, finding);
    context.add_waiting(finding, unblocking(group.calls), group.idle_ns);
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
    reading_values(context);
    explicit_waits(context);
    copies_to_host(context);
    allocations(context);
}

}  // namespace saturate
