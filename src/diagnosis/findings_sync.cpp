// SPDX-License-Identifier: Apache-2.0
// F06-F09: the host waits for the GPU or for memory, and then the GPU waits for the host.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "diagnosis/context.h"
#include "diagnosis/cure.h"

namespace saturate {
namespace {

// Adds up to three examples, from different lines of the user's code if the lines are known.
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

constexpr double kLeastIdle = 2.0;  // percent of the window, idle after a group of waits

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
    finding.evidence =
        fmt::format("{} wait for the GPU ({}); it idles until the host has launched more work",
                    names, context.rate_text(finding.count));
    if (context.is_training)
        finding.settings = cures("F06", context.facts);
    else
        finding.fix = "keep the value on the GPU, or read all results at once at the end";
    add_examples(context, waits.read_ops, finding);
    if (!context.trace.has_stacks)
        finding.surer = "with_stack=True shows the lines that read the values";
    context.add_waiting(finding, unblocking(waits.reads.calls), waits.reads.idle_ns);
}

void explicit_waits(Context& context) {
    const WaitGroup& group = context.waits.explicit_ones;
    if (group.calls.empty() || context.percent(group.idle_ns) < kLeastIdle) return;
    Finding finding{.id = "F07", .count = static_cast<std::int64_t>(group.calls.size())};
    finding.evidence = fmt::format("{} calls of {} ({})", finding.count,
                                   context.trace.name(context.event(group.calls[0])),
                                   context.rate_text(finding.count));
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
    finding.evidence =
        fmt::format("{} copies to pageable host memory ({}), item() and the like included", all,
                    context.rate_text(all));
    add_examples(context, group.calls, finding);
    context.add_waiting(finding, unblocking(group.calls), group.idle_ns);
}

// True if the calls occur throughout the steps (or the whole window if steps are not known) and no
// single call dominates. A cache that fills up allocates too, but only at the start.
bool is_spread(const Context& context, const std::vector<std::uint32_t>& calls) {
    const Timeline& line = context.line;
    std::size_t parts = line.has_steps && line.steps.size() > 2 ? line.steps.size() : 4;
    std::vector<std::int64_t> times(parts);
    std::int64_t all = 0, longest = 0;
    for (std::uint32_t index : calls) {
        const Event& call = context.event(index);
        longest = std::max(longest, call.duration_ns);
        std::size_t part = 0;
        if (parts == line.steps.size()) {
            while (part + 1 < parts && line.steps[part + 1].start_ns <= call.start_ns) ++part;
        } else {
            auto length = static_cast<double>(line.end_ns - line.start_ns);
            part = static_cast<std::size_t>(static_cast<double>(parts) *
                                            static_cast<double>(call.start_ns - line.start_ns) /
                                            std::max(length, 1.0));
        }
        times[std::min(part, parts - 1)] += call.duration_ns;
        all += call.duration_ns;
    }
    auto many = std::ranges::count_if(times, [&](std::int64_t time) {
        return time * 5 * static_cast<std::int64_t>(parts) >= all;
    });
    return static_cast<std::size_t>(many) * 2 >= parts && longest * 10 < all * 3;
}

void allocations(Context& context) {
    std::int64_t exposed = at(context.line.causes, Cause::allocator);
    std::vector<std::uint32_t> calls;
    std::int64_t host = 0;
    std::map<std::string_view, int> by_name;
    for (std::size_t i = 0; i < context.trace.events.size(); ++i) {
        const Event& event = context.event(i);
        if (event.category != Category::runtime || event.start_ns < context.line.start_ns ||
            event.start_ns >= context.line.end_ns || !is_allocating(context.trace.name(event)) ||
            context.line.is_in_one_off(event))
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
    finding.evidence = fmt::format(
        "{}: {:.0f} ms on the host, and the GPU is idle for {:.1f} % of the recorded time", names,
        static_cast<double>(host) / 1e6, context.percent(exposed));
    finding.settings = cures("F09", context.facts);
    int frees = 0;
    for (const auto& [name, count] : by_name) frees += name.find("Free") != name.npos ? count : 0;
    // Allocating without freeing in a trace without steps means that the cache is filling up. A
    // cache that gives much back between steps is full; libraries that start free once or twice.
    constexpr int kManyFrees = 5;
    bool is_filling = frees == 0 && !context.line.has_steps;
    bool is_spread_out = is_spread(context, calls);
    if (!is_spread_out && context.line.has_steps && frees >= kManyFrees) {
        finding.confidence = Confidence::medium;
        finding.evidence +=
            "; memory is given back and taken again: the GPU's memory is nearly full";
        finding.fix =
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; fixed shapes; a slightly smaller "
            "batch; no empty_cache()";
    } else if (is_filling || !is_spread_out) {
        finding.optional = true;
        finding.confidence = Confidence::low;
        finding.evidence += is_filling
                                ? "; none of it is given back: the cache is filling up"
                                : "; not in every part of it: the cache may still be filling up";
        finding.surer = "record later steps";
    }
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
