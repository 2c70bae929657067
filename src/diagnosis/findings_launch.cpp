// SPDX-License-Identifier: Apache-2.0
// F10-F14 and F27: the host cannot launch as fast as the GPU works.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "diagnosis/context.h"
#include "diagnosis/host.h"

namespace saturate {
namespace {

constexpr std::int64_t kTiny = 10'000;  // ns

// Causes of the gaps before a GPU event; the tail belongs to no launch.
CauseTimes before_work(const Timeline& line) {
    if (line.device < 0) return line.causes;  // a CPU trace: the host's own time
    CauseTimes sum = {};
    for (const Gap& gap : line.gaps) {
        if (gap.next < 0) continue;
        for (std::size_t i = 0; i < kCauses; ++i) sum[i] += gap.causes[i];
    }
    return sum;
}

bool repeats_itself(const Context& context) {
    if (context.line.steps.size() < 3) return false;
    std::map<std::size_t, int> by_count;
    for (const Step& step : context.line.steps) ++by_count[step.kernels];
    return std::ranges::any_of(by_count, [&](const auto& entry) {
        return entry.first > 0 &&
               entry.second * 3 >= static_cast<int>(context.line.steps.size()) * 2;
    });
}

void launch_bound(Context& context, const CauseTimes& causes) {
    std::int64_t late = at(causes, Cause::launch);
    if (context.percent(late) < 15 || context.line.gpu.empty()) return;
    std::int64_t host = 0;  // the host's own time in operators
    for (const Activity& activity : context.line.host) {
        if (activity.cause == Cause::launch || activity.cause == Cause::optimizer)
            host += activity.end_ns - activity.start_ns;
    }
    auto count = static_cast<std::int64_t>(context.line.gpu.size());
    if (host <= context.line.split.busy_ns() && context.percent(late) < 25) return;
    Finding finding{.id = "F10", .share_percent = context.percent(late), .count = count};
    finding.confidence = context.percent(late) >= 25 ? Confidence::high : Confidence::medium;
    finding.evidence = fmt::format(
        "the GPU idles {:.1f} % of the window while the host is inside operators: {:.1f} us of "
        "host per launch, "
        "{:.1f} us of GPU",
        context.percent(late), static_cast<double>(host) / 1e3 / static_cast<double>(count),
        static_cast<double>(context.line.split.busy_ns()) / 1e3 / static_cast<double>(count));
    finding.settings = {{"compile", "true"}};
    ReplayChange change;
    change.scale(Cause::launch) = change.scale(Cause::optimizer) = 0.4;
    if (!context.add(finding, change, late)) return;
    bool reads = context.has("F06") || context.has("F08");
    if (!reads && repeats_itself(context)) {
        Finding graph{.id = "F27",
                      .share_percent = finding.share_percent,
                      .ms_per_step = context.ms_per_step(late)};
        graph.count = static_cast<std::int64_t>(context.line.steps.size());
        graph.confidence = Confidence::low;
        graph.evidence =
            fmt::format("the steps launch the same number of kernels ({}) and read nothing back",
                        context.line.steps[context.line.steps.size() / 2].kernels);
        ReplayChange captured;
        captured.scale(Cause::launch) = captured.scale(Cause::optimizer) = 0.1;
        double likely = context.replay.gain(captured);
        graph.gain = {1.0 + 0.6 * (likely - 1.0), likely, likely};
        context.add_part(graph, "F10");
    }
}

void python_between(Context& context, const CauseTimes& causes) {
    std::int64_t late = at(causes, Cause::python) + at(causes, Cause::host);
    if (context.percent(late) < 10) return;
    // The frames that cost most, by name.
    std::map<std::uint32_t, std::int64_t> by_frame;
    std::map<std::uint32_t, std::int32_t> one;
    std::size_t at_gap = 0;
    for (const Activity& activity : context.line.host) {
        if (activity.cause != Cause::python || activity.event < 0) continue;
        while (at_gap < context.line.gaps.size() &&
               context.line.gaps[at_gap].end_ns <= activity.start_ns)
            ++at_gap;
        for (std::size_t i = at_gap; i < context.line.gaps.size(); ++i) {
            const Gap& gap = context.line.gaps[i];
            if (gap.start_ns >= activity.end_ns) break;
            const Event& frame = context.event(static_cast<std::size_t>(activity.event));
            by_frame[frame.name] +=
                std::min(gap.end_ns, activity.end_ns) - std::max(gap.start_ns, activity.start_ns);
            one[frame.name] = activity.event;
        }
    }
    if (context.line.device < 0) {
        for (const Activity& activity : context.line.host) {
            if (activity.cause != Cause::python || activity.event < 0) continue;
            std::uint32_t name = context.event(static_cast<std::size_t>(activity.event)).name;
            by_frame[name] += activity.end_ns - activity.start_ns;
            one[name] = activity.event;
        }
    }
    std::vector<std::pair<std::int64_t, std::uint32_t>> dearest;
    for (const auto& [name, time] : by_frame) dearest.emplace_back(time, name);
    std::ranges::sort(dearest, std::greater<>());
    Finding finding{.id = "F11", .share_percent = context.percent(late)};
    finding.confidence = context.trace.has_stacks ? Confidence::high : Confidence::medium;
    finding.evidence = fmt::format(
        "{} {:.1f} % of the window while the host is between operators",
        context.line.device < 0 ? "nothing is computed" : "the GPU idles", context.percent(late));
    for (std::size_t i = 0; i < std::min<std::size_t>(dearest.size(), 3); ++i) {
        std::string text =
            fmt::format("{} ({:.1f} ms)", context.trace.names.text(dearest[i].second),
                        static_cast<double>(dearest[i].first) / 1e6);
        finding.examples.push_back(
            context.example(static_cast<std::size_t>(one[dearest[i].second]), text));
    }
    if (!context.trace.has_stacks) finding.surer = "with_stack=True names the python frames";
    ReplayChange change;
    change.scale(Cause::python) = change.scale(Cause::host) = 0.3;
    context.add(finding, change, late);
}

void tiny_kernels(Context& context) {
    std::int64_t count = 0, tiny = 0, time = 0, waits = 0;
    for (std::uint32_t index : context.line.gpu) {
        const Event& kernel = context.event(index);
        if (kernel.category != Category::kernel) continue;
        ++count;
        if (kernel.duration_ns >= kTiny) continue;
        ++tiny;
        time += kernel.duration_ns;
    }
    for (const Gap& gap : context.line.gaps) {
        if (gap.next < 0) continue;
        const Event& next = context.event(static_cast<std::size_t>(gap.next));
        if (next.category != Category::kernel || next.duration_ns >= kTiny) continue;
        for (Cause cause : {Cause::launch, Cause::optimizer, Cause::latency})
            waits += at(gap.causes, cause);
    }
    if (tiny * 2 <= count || context.percent(time + waits) < 10 || context.percent(waits) < 5)
        return;
    Finding finding{.id = "F12",
                    .share_percent = context.percent(time + waits),
                    .ms_per_step = context.ms_per_step(time + waits),
                    .count = tiny};
    finding.evidence = fmt::format(
        "{} of {} kernels take under 10 us; they and the waits before them are {:.1f} % of the "
        "window",
        tiny, count, finding.share_percent);
    ReplayChange change;
    change.scale(Cause::launch) = change.scale(Cause::optimizer) = 0.6;
    change.gpu_scale = [&trace = context.trace](std::uint32_t event) {
        const Event& kernel = trace.events[event];
        return kernel.category == Category::kernel && kernel.duration_ns < kTiny ? 0.5 : 1.0;
    };
    if (context.has("F10")) {
        double likely = context.replay.gain(change);
        finding.gain = {1.0 + 0.6 * (likely - 1.0), likely, likely};
        context.add_part(finding, "F10");
    } else {
        context.add(finding, change, time + waits);
    }
}

struct Inner {
    std::vector<std::uint32_t> works;
    std::int64_t gpu_ns = 0;
    std::int64_t host_ns = 0;  // of the annotation
    std::int64_t idle_ns = 0;  // gaps before its works
    std::int64_t median_ns = 0;
    bool grouped = false;  // foreach or fused
};

Inner works_inside(const Context& context, std::uint8_t flag, std::string_view annotation) {
    Inner inner;
    std::vector<std::int64_t> times;
    for (std::size_t i = 0; i < context.line.gpu.size(); ++i) {
        if (!(context.launch_inside(i) & flag)) continue;
        const Event& work = context.event(context.line.gpu[i]);
        inner.works.push_back(context.line.gpu[i]);
        inner.gpu_ns += work.duration_ns;
        times.push_back(work.duration_ns);
        inner.grouped |=
            context.trace.name(work).find("multi_tensor_apply") != std::string_view::npos;
    }
    for (const Event& event : context.trace.events) {
        if (event.category == Category::annotation && event.start_ns >= context.line.start_ns &&
            event.start_ns < context.line.end_ns &&
            context.trace.name(event).starts_with(annotation))
            inner.host_ns += event.duration_ns;
    }
    for (const Gap& gap : context.line.gaps) {
        if (gap.next >= 0 &&
            std::ranges::binary_search(inner.works, static_cast<std::uint32_t>(gap.next)))
            inner.idle_ns += gap.length_ns();
    }
    if (!times.empty()) {
        std::ranges::nth_element(times,
                                 times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
        inner.median_ns = times[times.size() / 2];
    }
    return inner;
}

// On the CPU the operators inside Optimizer stand for the kernels that they would launch.
void optimizer_operators(Context& context) {
    std::int64_t steps = 0, zeros = 0;
    std::size_t step_example = 0, zero_example = 0;
    bool grouped = false;
    for (std::size_t i = 0; i < context.trace.events.size(); ++i) {
        const Event& event = context.event(i);
        if (event.category != Category::op || event.start_ns < context.line.start_ns) continue;
        std::string_view name = context.trace.name(event);
        std::uint8_t where = context.inside[i];
        if ((where & kInsideOptimizer) && !(where & kInsideOp)) {
            grouped |= name.find("_foreach") != name.npos || name.find("_fused") != name.npos;
            if (steps++ == 0) step_example = i;
        }
        if ((where & kInsideZeroGrad) && name == "aten::zero_" && zeros++ == 0) zero_example = i;
    }
    ReplayChange change;
    change.scale(Cause::optimizer) = 0.4;
    std::int64_t time = at(context.line.causes, Cause::optimizer);
    if (context.per_step(steps) > 50 && !grouped) {
        Finding finding{.id = "F13", .count = steps};
        finding.evidence =
            fmt::format("{:.0f} operators per step inside Optimizer.step, none of them grouped",
                        context.per_step(steps));
        finding.settings = {{"fused_optimizer", "true"}};
        finding.examples.push_back(context.example(step_example));
        context.add(finding, change, time);
    }
    if (context.per_step(zeros) > 10) {
        Finding finding{.id = "F14", .count = zeros};
        finding.evidence =
            fmt::format("{:.0f} zero_ per step inside zero_grad", context.per_step(zeros));
        finding.settings = {{"set_to_none", "true"}};
        finding.examples.push_back(context.example(zero_example));
        finding.gain = {1.0, 1.0, 1.02};
        context.findings.push_back(finding);
    }
}

void optimizer_kernels(Context& context) {
    if (context.line.device < 0) {
        optimizer_operators(context);
        return;
    }
    Inner step = works_inside(context, kInsideOptimizer, "Optimizer.step");
    Inner zero = works_inside(context, kInsideZeroGrad, "Optimizer.zero_grad");
    double host = static_cast<double>(std::max<std::int64_t>(step.host_ns + zero.host_ns, 1));
    auto change_for = [&](const Inner& inner, double kept) {
        ReplayChange change;
        change.scale(Cause::optimizer) =
            1.0 - (1.0 - kept) * static_cast<double>(inner.host_ns) / host;
        change.gpu_scale = [works = inner.works, kept](std::uint32_t event) {
            return std::ranges::binary_search(works, event) ? kept : 1.0;
        };
        return change;
    };
    auto count = static_cast<std::int64_t>(step.works.size());
    if (context.per_step(count) > 50 && step.median_ns < kTiny && !step.grouped) {
        Finding finding{.id = "F13", .count = count, .confidence = Confidence::high};
        finding.evidence = fmt::format(
            "{:.0f} kernels per step inside Optimizer.step, median {:.1f} us: one or more per "
            "parameter",
            context.per_step(count), static_cast<double>(step.median_ns) / 1e3);
        finding.settings = {{"fused_optimizer", "true"}};
        finding.examples.push_back(context.example(step.works.front()));
        context.add(finding, change_for(step, 0.1), step.idle_ns + step.gpu_ns);
    }
    count = static_cast<std::int64_t>(zero.works.size());
    if (context.per_step(count) > 10) {
        Finding finding{.id = "F14", .count = count, .confidence = Confidence::high};
        finding.evidence = fmt::format("{:.0f} kernels or memsets per step inside zero_grad",
                                       context.per_step(count));
        finding.settings = {{"set_to_none", "true"}};
        finding.examples.push_back(context.example(zero.works.front()));
        context.add(finding, change_for(zero, 0.02), zero.idle_ns + zero.gpu_ns);
    }
}

}  // namespace

void find_launch(Context& context) {
    CauseTimes causes = before_work(context.line);
    launch_bound(context, causes);
    python_between(context, causes);
    tiny_kernels(context);
    optimizer_kernels(context);
}

}  // namespace saturate
