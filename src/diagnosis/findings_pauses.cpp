// SPDX-License-Identifier: Apache-2.0
// F23 and F24: the training loop stops for a checkpoint, an evaluation or a compilation.
#include <fmt/format.h>

#include <algorithm>

#include "diagnosis/context.h"

namespace saturate {
namespace {

// The time that the host spends on one cause from a given step on, with the events.
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
    // Without a GPU, the lost time is the host's own time.
    std::int64_t lost = spent.ns;
    if (context.line.device >= 0) {
        lost = 0;
        for (std::size_t i = from_step; i < context.line.steps.size(); ++i)
            lost += at(context.line.steps[i].causes, cause);
    }
    if (spent.events.empty() || context.percent(lost) < 2) return;
    Finding finding{.id = std::string(id), .share_percent = context.percent(lost)};
    finding.count = static_cast<std::int64_t>(spent.events.size());
    finding.evidence = fmt::format("{} takes {:.0f} ms, {:.1f} % of the recorded time", what,
                                   static_cast<double>(lost) / 1e6, context.percent(lost));
    for (std::size_t i = 0; i < std::min<std::size_t>(spent.events.size(), 3); ++i)
        finding.examples.push_back(context.example(spent.events[i]));
    ReplayChange change;
    change.scale(cause) = 0.1;
    context.add(finding, change, lost);
}

std::int64_t recording_in(const Timeline& line, const Step& step) {
    std::int64_t sum = 0;
    for (const Activity& one : line.one_offs) {
        if (one.cause == Cause::recording)
            sum += std::max<std::int64_t>(
                0, std::min(one.end_ns, step.end_ns) - std::max(one.start_ns, step.start_ns));
    }
    return sum;
}

// A CUDA graph that is recorded again in several steps because its addresses or shapes change.
void recorded_again(Context& context) {
    if (!context.line.has_steps || context.has("F24")) return;
    std::int64_t steps = 0, time = 0;
    for (const Step& step : context.line.steps) {
        std::int64_t one = at(step.causes, Cause::recording);
        if (context.line.cut) one = recording_in(context.line, step);
        steps += one > 0;
        time += one;
    }
    if (steps < 3) return;
    const SteadyPart& steady = context.line.steady;
    Finding finding{.id = "F24", .share_percent = steady.percent(time), .count = steps};
    finding.ms_per_step = context.ms_per_step(time);
    finding.evidence =
        fmt::format("CUDA graphs are recorded in {} of {} steps: {:.0f} % of the recorded time",
                    steps, context.line.steps.size(), finding.share_percent);
    finding.fix =
        "keep shapes and addresses the same from step to step: fixed batch size, "
        "torch.compiler.cudagraph_mark_step_begin(), no new input tensors";
    double left = std::max(0.05, 1.0 - finding.share_percent / 100.0);
    finding.gain = {1.0 + 0.6 * (1.0 / left - 1.0), 1.0 / left, 1.0 / left};
    context.findings.push_back(finding);
}

}  // namespace

void find_pauses(Context& context) {
    report(context, "F23", Cause::pause, "a checkpoint or an evaluation inside the loop", 0);
    // Compiling in the first step, or in the first half if steps are unknown, is start-up.
    const Timeline& line = context.line;
    bool has_first = line.has_steps && line.steps.size() > 2 && line.steps_dropped == 0 &&
                     line.steady.left_out.empty();
    report(context, "F24", Cause::compile, "compilation or module loading in the steady part",
           has_first ? 1 : 0);
    recorded_again(context);
}

}  // namespace saturate
