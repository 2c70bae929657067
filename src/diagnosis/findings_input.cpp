// SPDX-License-Identifier: Apache-2.0
// F01-F05: the next batch is not ready in time, or its copy to the GPU takes long.
#include <fmt/format.h>

#include <algorithm>

#include "diagnosis/context.h"
#include "diagnosis/cure.h"
#include "remedies/catalogue.h"

namespace saturate {
namespace {

// By how much loader workers slow the launching thread. A single busy core of a server CPU is
// clocked 5 to 30 % higher than all cores together, and workers share its cache and memory
// bandwidth. The trace does not say how many cores the workers will keep busy. Hence a range.
constexpr double kPressureLeast = 1.0;
constexpr double kPressureLikely = 1.1;
constexpr double kPressureMost = 1.25;
constexpr double kNextWithWorkers = 0.02;  // a fetch, as a share of making a batch

struct TracedLoader {
    std::vector<std::uint32_t> calls;  // __next__ in the window
    std::int64_t median_ns = 0;
    std::int64_t longest_ns = 0;
    bool in_process = false;
};

TracedLoader find_loader(const Context& context) {
    TracedLoader loader;
    std::vector<std::int64_t> times;
    for (std::size_t i = 0; i < context.trace.events.size(); ++i) {
        const Event& event = context.event(i);
        if (event.category != Category::annotation || event.start_ns < context.line.start_ns ||
            event.start_ns >= context.line.end_ns)
            continue;
        std::string_view name = context.trace.name(event);
        if (!name.starts_with("enumerate(DataLoader)#")) continue;
        loader.in_process |= name.find("_SingleProcessDataLoaderIter") != std::string_view::npos;
        loader.calls.push_back(static_cast<std::uint32_t>(i));
        times.push_back(event.duration_ns);
    }
    if (times.empty()) return loader;
    std::ranges::sort(times);
    loader.median_ns = times[times.size() / 2];
    loader.longest_ns = times.back();
    return loader;
}

void input_wait(Context& context, const TracedLoader& loader) {
    std::int64_t wait = at(context.line.causes, Cause::input);
    double share = context.percent(wait);
    if (share < 5) return;
    auto batches = std::max<std::int64_t>(static_cast<std::int64_t>(loader.calls.size()), 1);
    double batch_ms = static_cast<double>(loader.median_ns) / 1e6;
    // The step time without the wait: the workers must deliver a batch in this time.
    double rest_ms =
        static_cast<double>(context.line.length_ns() - wait) / 1e6 / static_cast<double>(batches);
    Facts facts = context.facts;
    if (loader.in_process)
        facts.loader = LoaderTimes{.fetch_seconds = batch_ms / 1e3,
                                   .compute_seconds = std::max(rest_ms, 0.001) / 1e3};
    int workers = worker_count(facts);
    Finding finding{.id = "F01", .count = batches};
    finding.confidence = share >= 20 ? Confidence::high : Confidence::medium;
    finding.evidence = fmt::format(
        "the GPU idles {:.1f} % of the recorded time in DataLoader __next__ ({} calls, "
        "median {:.1f} ms)",
        share, batches, batch_ms);
    auto fetched_by_workers = [&](double pressure) {
        ReplayChange change;
        change.scale(Cause::input) = kNextWithWorkers;
        for (Cause cause : {Cause::launch, Cause::optimizer, Cause::python, Cause::host})
            change.scale(cause) = pressure;
        return change;
    };
    finding.settings = cures("F01", facts);
    ReplayChange change = fetched_by_workers(1.0);
    if (loader.in_process) {
        finding.fix = fmt::format(
            "DataLoader(num_workers={}, persistent_workers=True, prefetch_factor=4)", workers);
        change = fetched_by_workers(kPressureLikely);
        finding.assumes = fmt::format(
            "workers slow the main thread by {:.0f} % ({:.0f} to {:.0f} %: {:.2f} to {:.2f} times)",
            100 * (kPressureLikely - 1), 100 * (kPressureLeast - 1), 100 * (kPressureMost - 1),
            context.replay.gain(fetched_by_workers(kPressureLeast)),
            context.replay.gain(fetched_by_workers(kPressureMost)));
    } else {
        finding.surer =
            "num_workers and the free cores are not in the trace; compare with `saturate doctor`";
    }
    std::vector<std::uint32_t> longest = loader.calls;
    std::ranges::stable_sort(longest, std::greater<>(), [&](std::uint32_t call) {
        return context.event(call).duration_ns;
    });
    for (std::size_t i = 0; i < std::min<std::size_t>(longest.size(), 2); ++i) {
        const Event& call = context.event(longest[i]);
        finding.examples.push_back(context.example(
            longest[i],
            fmt::format("__next__ {:.1f} ms", static_cast<double>(call.duration_ns) / 1e6)));
    }
    if (!context.add(finding, change, wait) || !loader.in_process) return;
    Finding part{.id = "F02",
                 .share_percent = share,
                 .ms_per_step = context.ms_per_step(wait),
                 .count = batches,
                 .confidence = Confidence::high};
    part.evidence = fmt::format(
        "_SingleProcessDataLoaderIter: one batch takes {:.1f} ms, the rest of the step "
        "{:.1f} ms; {} worker{} keep{} up",
        batch_ms, rest_ms, workers, workers == 1 ? "" : "s", workers == 1 ? "s" : "");
    part.fix = finding.fix;
    part.gain = context.findings.back().gain;
    context.add_part(part, "F01");
}

void jitter(Context& context, const TracedLoader& loader) {
    if (loader.calls.size() < 5 || loader.longest_ns < 5 * loader.median_ns) return;
    std::int64_t excess = 0;
    std::vector<std::uint32_t> slow;
    for (std::uint32_t call : loader.calls) {
        std::int64_t time = context.event(call).duration_ns;
        if (time < 5 * loader.median_ns || time < 1'000'000) continue;
        excess += time - loader.median_ns;
        slow.push_back(call);
    }
    excess = std::min(excess, at(context.line.causes, Cause::input));
    if (context.percent(excess) < 2) return;
    Finding finding{.id = "F05",
                    .share_percent = context.percent(excess),
                    .count = static_cast<std::int64_t>(slow.size())};
    finding.evidence = fmt::format(
        "{} of {} __next__ calls take over 5 times the median of {:.1f} ms, the longest {:.0f} ms",
        slow.size(), loader.calls.size(), static_cast<double>(loader.median_ns) / 1e6,
        static_cast<double>(loader.longest_ns) / 1e6);
    finding.settings = cures("F05", context.facts);
    for (std::size_t i = 0; i < std::min<std::size_t>(slow.size(), 3); ++i)
        finding.examples.push_back(context.example(slow[i]));
    ReplayChange change;
    double wait =
        static_cast<double>(std::max<std::int64_t>(at(context.line.causes, Cause::input), 1));
    change.scale(Cause::input) = 1.0 - static_cast<double>(excess) / wait;
    if (context.has("F01")) {
        finding.gain = {1.0, context.replay.gain(change), context.replay.gain(change)};
        context.add_part(finding, "F01");
    } else {
        context.add(finding, change, excess);
    }
}

double pinned_gb_per_second(const Context& context) {
    if (!context.device || !context.device->capability) return 12;
    const Capability& capability = *context.device->capability;
    return capability >= Capability{9, 0}   ? 50
           : capability >= Capability{8, 0} ? 22
                                            : 12;  // PCIe 5, 4, 3
}

void pageable_copies(Context& context) {
    std::int64_t bytes = 0, time = 0, blocked = 0;
    std::vector<std::uint32_t> calls, pageable;
    for (std::size_t i = 0; i < context.line.gpu.size(); ++i) {
        const Event& copy = context.event(context.line.gpu[i]);
        if (copy.category != Category::memcpy) continue;
        std::string_view name = context.trace.name(copy);
        const GpuDetail* detail = context.trace.gpu_detail(copy);
        if (name.find("HtoD (Pageable") == name.npos) continue;
        pageable.push_back(context.line.gpu[i]);
        bytes += detail ? static_cast<std::int64_t>(detail->bytes) : 0;
        time += copy.duration_ns;
        if (const Event* call = context.launch(i)) {
            blocked += call->duration_ns;
            calls.push_back(static_cast<std::uint32_t>(context.line.launch_of[i]));
        }
    }
    if (!calls.empty() && time > 0) {
        double speed = static_cast<double>(bytes) / static_cast<double>(time);  // GB/s
        double faster = std::min(1.0, speed / pinned_gb_per_second(context));
        ReplayChange change = scaling_works(pageable, faster);
        const WaitGroup& waits = context.waits.to_device;
        change.unblock = unblocking(waits.calls).unblock;
        std::int64_t exposed = waits.idle_ns + std::min(time, context.line.split.memcpy_ns);
        Finding finding{.id = "F03", .count = static_cast<std::int64_t>(calls.size())};
        // The driver stages copies of up to 64 KB at once: page-locked memory is no faster.
        bool is_tiny = bytes <= 65'536 * static_cast<std::int64_t>(calls.size());
        double mb = static_cast<double>(bytes) / 1e6, ms = static_cast<double>(blocked) / 1e6;
        finding.evidence =
            fmt::format("{} cop{}, {:.{}f} {} at {:.1f} GB/s; the host is blocked {:.{}f} ms",
                        calls.size(), calls.size() == 1 ? "y" : "ies",
                        mb >= 1000  ? mb / 1e3
                        : mb >= 0.1 ? mb
                                    : mb * 1e3,
                        mb >= 1000 ? 2 : 1,
                        mb >= 1000  ? "GB"
                        : mb >= 0.1 ? "MB"
                                    : "KB",
                        speed, ms, ms < 10 ? 1 : 0);
        if (is_tiny) {
            finding.fix =
                "make small tensors on the GPU (torch.tensor(..., device=device)), once before the "
                "loop where they do not change, or copy them with non_blocking=True";
        } else if (context.has_loader) {
            finding.settings = cures("F03", context.facts);
        } else {
            finding.fix =
                "copy from page-locked memory: tensor.pin_memory(), then .to(device, "
                "non_blocking=True)";
        }
        finding.examples.push_back(context.example(calls.front()));
        finding.assumes =
            is_tiny ? "the host no longer waits for them (estimate)"
                    : fmt::format(
                          "page-locked copies at {:.0f} GB/s (estimate for the GPU's generation)",
                          pinned_gb_per_second(context));
        context.add_waiting(finding, change, exposed);
    }
}

void pinned_copies(Context& context) {
    std::int64_t bytes = 0, time = 0;
    std::vector<std::uint32_t> pinned;
    for (std::uint32_t index : context.line.gpu) {
        const Event& copy = context.event(index);
        if (copy.category != Category::memcpy ||
            context.trace.name(copy).find("HtoD (Pinned") == std::string_view::npos)
            continue;
        const GpuDetail* detail = context.trace.gpu_detail(copy);
        pinned.push_back(index);
        bytes += detail ? static_cast<std::int64_t>(detail->bytes) : 0;
        time += copy.duration_ns;
    }
    std::int64_t exposed = std::min(time, context.line.split.memcpy_ns);
    if (pinned.empty() || context.percent(exposed) < 2) return;
    Finding finding{.id = "F04", .count = static_cast<std::int64_t>(pinned.size())};
    finding.evidence = fmt::format(
        "{} pinned copies take {:.1f} % of the recorded time on the GPU while nothing else runs",
        pinned.size(), context.percent(exposed));
    finding.examples.push_back(context.example(pinned.front()));
    finding.assumes = "copies and other work run side by side: the longer of them is left";
    // Even if overlapped, copies that take longer than the rest of the step remain visible.
    std::int64_t rest = context.line.length_ns() - exposed;
    double left = static_cast<double>(time - rest) / static_cast<double>(exposed);
    if (time > rest) {
        finding.evidence +=
            fmt::format("; {:.1f} GB at {:.1f} GB/s", static_cast<double>(bytes) / 1e9,
                        static_cast<double>(bytes) / static_cast<double>(time));
        finding.fix =
            "copy less: keep on the GPU what is sent in every step (no offloading to the CPU), or "
            "send it in a smaller type; a side stream hides only what is computed meanwhile";
    }
    auto hidden =
        static_cast<std::int64_t>((1.0 - std::max(left, 0.0)) * static_cast<double>(exposed));
    finding.share_percent = context.percent(exposed);
    finding.ms_per_step = context.ms_per_step(exposed);
    // Report it in spite of a small gain if it takes most of the time.
    context.add(finding, scaling_works(pinned, std::max(left, 0.02)), hidden,
                2 * exposed >= context.line.length_ns());
}

}  // namespace

void find_input(Context& context) {
    TracedLoader loader = find_loader(context);
    input_wait(context, loader);
    jitter(context, loader);
    pageable_copies(context);
    pinned_copies(context);
}

}  // namespace saturate
