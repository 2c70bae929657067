// SPDX-License-Identifier: Apache-2.0
// F23 and F24: the loop stops for a checkpoint, an evaluation or a compilation.
#include <fmt/format.h>

#include <algorithm>

#include "diagnosis/context.h"

namespace saturate {
namespace {

// The host's time under one cause from a step on, and the events behind it.
struct Spent {
    std::int64_t ns = 0;
    std::vector<std::uint32_t> events;
};

Spent spent_on(const Timeline& line, Cause cause, std::size_t from_step) {
    Spent spent;
    for (const Activity& activity : line.host) {
        if (activity.cause != cause || activity.start_ns < line.steps[from_step].start_ns) continue;
        spent.ns += activity.end_ns - activity.start_ns;
        auto event = static_cast<std::uint32_t>(activity.event);
        if (spent.events.empty() || spent.events.back() != event) spent.events.push_back(event);
    }
    return spent;
}

void report(Context& context, std::string_view id, Cause cause, std::string_view what,
            std::size_t from_step) {
    Spent spent = spent_on(context.line, cause, from_step);
    // Without a GPU the host's own time is what is lost.
    std::int64_t lost = spent.ns;
    if (context.line.device >= 0) {
        lost = 0;
        for (std::size_t i = from_step; i < context.line.steps.size(); ++i)
            lost += at(context.line.steps[i].causes, cause);
    }
    if (spent.events.empty() || context.percent(lost) < 2) return;
    Finding finding{.id = std::string(id), .share_percent = context.percent(lost)};
    finding.count = static_cast<std::int64_t>(spent.events.size());
    finding.evidence = fmt::format("{} takes {:.0f} ms, {:.1f} % of the window", what,
                                   static_cast<double>(lost) / 1e6, context.percent(lost));
    for (std::size_t i = 0; i < std::min<std::size_t>(spent.events.size(), 3); ++i)
        finding.examples.push_back(context.example(spent.events[i]));
    ReplayChange change;
    change.scale(cause) = 0.1;
    context.add(finding, change, lost);
}

}  // namespace

void find_pauses(Context& context) {
    report(context, "F23", Cause::pause, "a checkpoint or an evaluation inside the loop", 0);
    // The first step compiles; it is no steady state.
    std::size_t steady = context.line.steps_dropped > 0 ? 0 : 1;
    if (context.line.has_steps && context.line.steps.size() > steady + 1)
        report(context, "F24", Cause::compile, "compilation or module loading after the first step",
               steady);
}

}  // namespace saturate
