// SPDX-License-Identifier: Apache-2.0
// F15, F16 and F28, which one rank can show. F17 compares ranks: see ranks.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "diagnosis/context.h"

namespace saturate {
namespace {

void exposed_communication(Context& context) {
    std::int64_t exposed = context.line.split.communication_ns;
    if (context.percent(exposed) < 10) return;
    std::vector<std::uint32_t> all;
    std::uint32_t longest = 0;
    std::int64_t most = -1;
    for (std::uint32_t index : context.line.gpu) {
        const Event& event = context.event(index);
        if (event.category != Category::kernel ||
            context.classes.of(event) != KernelClass::communication)
            continue;
        all.push_back(index);
        if (event.duration_ns > most) {
            most = event.duration_ns;
            longest = index;
        }
    }
    Finding finding{.id = "F15",
                    .share_percent = context.percent(exposed),
                    .count = static_cast<std::int64_t>(all.size()),
                    .confidence = Confidence::low};
    finding.evidence = fmt::format(
        "{:.1f} % of the recorded time is communication while nothing is computed ({} collectives)",
        context.percent(exposed), all.size());
    finding.surer =
        "traces of all ranks would show whether this is transfer or waiting for a late rank";
    finding.examples.push_back(context.example(longest));
    std::string_view name = context.trace.name(context.event(longest));
    bool is_exchange = name.find("SendRecv") != name.npos || name.find("AllToAll") != name.npos;
    if (!context.is_training && is_exchange)
        finding.fix =
            "all-to-all or pipeline traffic: overlap it with other work, send less (a smaller "
            "type), "
            "a faster link";
    else if (!context.is_training)
        finding.fix =
            "tensor-parallel traffic: overlap it with other work (asynchronous or sequence "
            "parallel), fewer and larger collectives, fewer GPUs per replica, a faster link";
    finding.assumes = "half of it can be hidden (estimate)";
    // One rank cannot tell how much of the time is transfer; we assume that half can be hidden.
    context.add(finding, scaling_works(all, 0.5), exposed, true);
}

// Returns how many of these collectives (by start) follow another one without any work between.
std::int64_t neighbours(const Context& context, const std::vector<std::uint32_t>& collectives) {
    std::int64_t count = 0;
    std::uint32_t before = 0;
    bool is_first = true;
    for (std::uint32_t index : context.line.gpu) {
        bool is_one = std::ranges::binary_search(collectives, index);
        if (!is_first) count += is_one && std::ranges::binary_search(collectives, before);
        before = index;
        is_first = false;
    }
    return count;
}

// The share of calls saved: a default bucket of DDP, 25 MB, holds gradients of some 40 layers.
constexpr double kSpared = 39.0 / 40.0;

void small_collectives(Context& context) {
    std::vector<std::uint32_t> all, calls;
    std::vector<std::int64_t> times;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < context.line.gpu.size(); ++i) {
        std::uint32_t index = context.line.gpu[i];
        const Event& event = context.event(index);
        if (event.category != Category::kernel ||
            context.classes.of(event) != KernelClass::communication)
            continue;
        all.push_back(index);
        if (context.line.launch_of[i] >= 0)
            calls.push_back(static_cast<std::uint32_t>(context.line.launch_of[i]));
        times.push_back(event.duration_ns);
        sum += event.duration_ns;
    }
    auto count = static_cast<std::int64_t>(all.size());
    if (count == 0 || context.per_step(count) <= 50) return;
    // Without gradients, each layer needs the result of its collective: only neighbours can join.
    if (!context.is_training && 2 * neighbours(context, all) < count) return;
    std::ranges::sort(calls);
    std::ranges::sort(times);
    std::int64_t median = times[times.size() / 2];
    if (median >= 100'000) return;
    // Most of a small collective is its latency.
    std::int64_t latency = times[times.size() / 20];
    double saved = static_cast<double>(latency * count) * kSpared;
    double scale = std::max(0.1, 1.0 - saved / static_cast<double>(std::max<std::int64_t>(sum, 1)));
    ReplayChange change = scaling_works(all, scale);
    // The host makes fewer calls too.
    change.call_scale = [calls](std::uint32_t event) {
        return std::ranges::binary_search(calls, event) ? 1.0 - kSpared : 1.0;
    };
    Finding finding{.id = "F16", .count = count, .confidence = Confidence::medium};
    finding.evidence = fmt::format("{} collectives ({}), median {:.0f} us", count,
                                   context.rate_text(count), static_cast<double>(median) / 1e3);
    if (!context.is_training) finding.fix = "join small collectives into fewer, larger ones";
    finding.assumes = "forty of them are merged into one (estimate)";
    finding.examples.push_back(context.example(all.front()));
    std::int64_t exposed = std::min<std::int64_t>(static_cast<std::int64_t>(saved),
                                                  context.line.split.communication_ns);
    for (const Gap& gap : context.line.gaps) {
        if (gap.next >= 0 && std::ranges::binary_search(all, static_cast<std::uint32_t>(gap.next)))
            exposed += gap.steady_ns();
    }
    context.add(finding, change, exposed);
}

void wrong_parallelism(Context& context) {
    const Timeline& line = context.line;
    if (context.trace.backend == "gloo" && line.device >= 0 &&
        context.trace.world_size.value_or(1) > 1) {
        Finding finding{.id = "F28", .count = 1, .confidence = Confidence::high};
        finding.evidence = "the process group uses gloo although the job computes on a GPU";
        finding.gain = {1.0, 1.0, 1.0};
        context.findings.push_back(finding);
        return;
    }
    if (line.devices_used.size() < 2) return;
    // Several devices in one trace do not prove one process; the names of DataParallel do.
    bool has_replicas = std::ranges::any_of(context.trace.events, [&](const Event& event) {
        return event.category <= Category::python && !is_gpu(event.category) &&
               (context.trace.name(event).find("DataParallel.forward") == 0 ||
                context.trace.name(event).find("parallel_apply") != std::string_view::npos);
    });
    if (!has_replicas) return;
    Finding finding{.id = "F28",
                    .count = static_cast<std::int64_t>(line.devices_used.size()),
                    .confidence = Confidence::high};
    finding.evidence =
        fmt::format("one process launches on {} devices (DataParallel)", line.devices_used.size());
    finding.share_percent = context.percent(line.split.idle_ns);
    finding.gain = {1.0, 1.0, 1.0};
    context.findings.push_back(finding);
}

}  // namespace

void find_communication(Context& context) {
    exposed_communication(context);
    small_collectives(context);
    wrong_parallelism(context);
}

}  // namespace saturate
