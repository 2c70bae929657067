// SPDX-License-Identifier: Apache-2.0
// F13 and F14: the optimizer handles the parameters one by one.
#include <fmt/format.h>

#include <algorithm>

#include "diagnosis/context.h"
#include "diagnosis/cure.h"

namespace saturate {
namespace {

struct Inner {
    std::vector<std::uint32_t> works;
    std::int64_t gpu_ns = 0;
    std::int64_t host_ns = 0;  // length of the annotation
    std::int64_t idle_ns = 0;  // gaps before these GPU events
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
            inner.idle_ns += gap.steady_ns();
    }
    if (!times.empty()) {
        std::ranges::nth_element(times,
                                 times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
        inner.median_ns = times[times.size() / 2];
    }
    return inner;
}

// In a CPU trace, the operators inside the optimizer stand for the kernels that they would launch.
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
            fmt::format("{} operators inside Optimizer.step ({}), none of them grouped", steps,
                        context.rate_text(steps));
        finding.settings = cures("F13", context.facts);
        finding.examples.push_back(context.example(step_example));
        context.add(finding, change, time);
    }
    if (context.per_step(zeros) > 10) {
        Finding finding{.id = "F14", .count = zeros};
        finding.evidence =
            fmt::format("{} zero_ inside zero_grad ({})", zeros, context.rate_text(zeros));
        finding.settings = cures("F14", context.facts);
        finding.examples.push_back(context.example(zero_example));
        finding.gain = {1.0, 1.0, 1.02};
        context.findings.push_back(finding);
    }
}

// Optimizers of torch.optim with fused=True; the others only have foreach.
bool has_fused(std::string_view optimizer) {
    return optimizer == "SGD" || optimizer == "Adam" || optimizer == "AdamW" ||
           optimizer == "Adagrad";
}

void optimizer_kernels(Context& context) {
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
    if (context.per_step(count) > 50 && step.median_ns < kTinyKernel && !step.grouped) {
        Finding finding{.id = "F13", .count = count, .confidence = Confidence::high};
        finding.evidence = fmt::format(
            "{} kernels inside Optimizer.step ({}), median {:.1f} us: one or more per parameter",
            count, context.rate_text(count), static_cast<double>(step.median_ns) / 1e3);
        if (context.optimizer.empty() || has_fused(context.optimizer))
            finding.settings = cures("F13", context.facts);
        if (!context.optimizer.empty())
            finding.fix = has_fused(context.optimizer)
                              ? fmt::format("optimizer = {}(..., fused=True), or foreach=True",
                                            context.optimizer)
                              : fmt::format("optimizer = {}(..., foreach=True)", context.optimizer);
        finding.assumes =
            "a fused optimizer takes 10 % of the time of kernels and launches (estimate)";
        finding.examples.push_back(context.example(step.works.front()));
        std::int64_t idle = std::max(
            step.idle_ns, static_cast<std::int64_t>(
                              static_cast<double>(at(context.line.causes, Cause::optimizer)) *
                              static_cast<double>(step.host_ns) / host));
        context.add(finding, change_for(step, 0.1), idle + step.gpu_ns);
    }
    count = static_cast<std::int64_t>(zero.works.size());
    if (context.per_step(count) > 10) {
        Finding finding{.id = "F14", .count = count, .confidence = Confidence::high};
        finding.evidence = fmt::format("{} kernels or memsets inside zero_grad ({})", count,
                                       context.rate_text(count));
        finding.settings = cures("F14", context.facts);
        finding.examples.push_back(context.example(zero.works.front()));
        context.add(finding, change_for(zero, 0.02), zero.idle_ns + zero.gpu_ns);
    }
}

}  // namespace

void find_optimizer(Context& context) {
    if (context.line.device < 0)
        optimizer_operators(context);
    else
        optimizer_kernels(context);
}

}  // namespace saturate
