// SPDX-License-Identifier: Apache-2.0
// F10-F12 and F27: the host launches more slowly than the GPU works.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "diagnosis/context.h"
#include "diagnosis/cure.h"
#include "diagnosis/host.h"

namespace saturate {
namespace {

// Sums the causes of the gaps that end with a GPU event, so without the tail.
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

// The share of the host's time per launch that remains. Estimates: compiled code launches in 0.3 to
// 0.5 of the time of eager code, a captured step in 0.1 or less.
constexpr double kCompiled = 0.4, kCaptured = 0.1;

// True if one call launches this work together with other work.
bool is_in_graph(const Context& context, const Event* launch) {
    return launch && is_graph_launch(context.trace.name(*launch));
}

// True if CUDA graphs launch most of the work already.
bool uses_graphs(const Context& context) {
    std::size_t inside = 0;
    for (std::size_t i = 0; i < context.line.gpu.size(); ++i)
        inside += is_in_graph(context, context.launch(i));
    return 2 * inside >= context.line.gpu.size();
}

constexpr const char* kCompiledFix =
    "torch.compile(mode='reduce-overhead') for CUDA graphs; remove graph breaks "
    "(TORCH_LOGS=graph_breaks); a larger batch";

void captured_step(Context& context, const Finding& bound, std::int64_t late) {
    if (context.has("F06") || context.has("F08") || !repeats_itself(context)) return;
    Finding graph{.id = "F27",
                  .share_percent = bound.share_percent,
                  .ms_per_step = context.ms_per_step(late)};
    graph.count = static_cast<std::int64_t>(context.line.steps.size());
    graph.confidence = Confidence::low;
    graph.evidence =
        fmt::format("the steps launch the same number of kernels ({}) and read nothing back",
                    context.line.steps[context.line.steps.size() / 2].kernels);
    ReplayChange captured;
    captured.scale(Cause::launch) = captured.scale(Cause::optimizer) = kCaptured;
    double likely = std::min(context.replay.gain(captured), context.most_gain(captured));
    graph.gain = {1.0 + 0.6 * (likely - 1.0), likely, likely};
    graph.assumes = "a captured step launches in 10 % of the time (estimate)";
    context.add_part(graph, "F10");
}

struct LateGap {
    const Gap* gap = nullptr;
    std::int64_t late_ns = 0;  // because the host launched late
};

// Returns the few longest of these gaps (three, or three per step) if they hold at least two
// thirds of the time, or none.
std::vector<LateGap> few_gaps(const Context& context, std::int64_t late) {
    std::vector<LateGap> gaps;
    for (const Gap& gap : context.line.gaps) {
        if (gap.next < 0) continue;
        gaps.push_back({&gap, at(gap.causes, Cause::launch) + at(gap.causes, Cause::latency) +
                                  (context.has_operators ? 0
                                                         : at(gap.causes, Cause::python) +
                                                               at(gap.causes, Cause::host))});
    }
    std::size_t few =
        std::min(gaps.size(), 3 * static_cast<std::size_t>(context.line.step_count()));
    std::ranges::partial_sort(gaps, gaps.begin() + static_cast<std::ptrdiff_t>(few),
                              std::greater<>(), &LateGap::late_ns);
    gaps.resize(few);
    std::int64_t held = 0;
    for (const LateGap& gap : gaps) held += gap.late_ns;
    return 3 * held >= 2 * late ? gaps : std::vector<LateGap>{};
}

// True if such gaps return in nearly every one of three or more steps: no start-up then.
bool returns_in_steps(const Context& context, const std::vector<LateGap>& gaps) {
    const std::vector<Step>& steps = context.line.steps;
    constexpr std::int64_t kLong = 1'000'000;
    if (!context.line.has_steps || steps.size() < 3 || gaps.empty() || gaps[0].late_ns < kLong)
        return false;
    std::int64_t held = 0;
    for (const LateGap& gap : gaps) held += gap.late_ns;
    auto with = std::ranges::count_if(steps, [&](const Step& step) {
        std::int64_t inside = 0;
        for (const LateGap& gap : gaps) {
            if (gap.gap->end_ns > step.start_ns && gap.gap->end_ns <= step.end_ns)
                inside += gap.late_ns;
        }
        return 2 * inside * static_cast<std::int64_t>(steps.size()) >= held;
    });
    return 5 * with >= 4 * static_cast<std::int64_t>(steps.size());
}

// The operator, none around it, in which the host spends most of these gaps.
struct LongOperator {
    std::int64_t time_ns = 0;
    std::int64_t event = -1;
};

LongOperator operator_in(const Context& context, const std::vector<LateGap>& gaps) {
    std::map<std::uint32_t, LongOperator> by_name;
    for (const LateGap& late : gaps) {
        std::int64_t until = late.gap->start_ns;  // operators before this are inside another one
        for (std::size_t i = 0; i < context.trace.events.size(); ++i) {
            const Event& event = context.event(i);
            if (event.start_ns >= late.gap->end_ns) break;
            if (event.category != Category::op || event.end_ns() <= until ||
                std::ranges::find(context.line.host_lanes, event.lane) ==
                    context.line.host_lanes.end())
                continue;
            std::int64_t end = std::min(event.end_ns(), late.gap->end_ns);
            LongOperator& one = by_name[event.name];
            one.time_ns += end - std::max(event.start_ns, until);
            if (one.event < 0) one.event = static_cast<std::int64_t>(i);
            until = end;
        }
    }
    LongOperator longest;
    for (const auto& [name, one] : by_name) {
        if (one.time_ns > longest.time_ns) longest = one;
    }
    return longest;
}

void launch_bound(Context& context, const CauseTimes& causes) {
    std::int64_t late = at(causes, Cause::launch);
    // Without operators, launching and Python between two calls look the same: count both.
    bool is_nameless = !context.has_operators;
    if (is_nameless) late += at(causes, Cause::python) + at(causes, Cause::host);
    // Much latency between calls and their kernels counts as launching too.
    std::int64_t latency = at(causes, Cause::latency);
    if (context.percent(latency) >= 10) late += latency;
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
        "the GPU idles {:.1f} % of the recorded time while the host is inside operators: {:.1f} us "
        "of host per launch, {:.1f} us of GPU",
        context.percent(late), static_cast<double>(host) / 1e3 / static_cast<double>(count),
        static_cast<double>(context.line.split.busy_ns()) / 1e3 / static_cast<double>(count));
    finding.assumes =
        fmt::format("compiled code launches in {:.0f} % of the time (estimate)", 100 * kCompiled);
    bool has_graphs = uses_graphs(context);
    if (has_graphs) {
        finding.fix = "launch less outside of the CUDA graphs, or capture it too; a larger batch";
        finding.assumes = "60 % of it can be avoided (estimate)";
    } else if (context.is_compiled) {
        finding.fix = kCompiledFix;
        finding.assumes =
            "launching takes 40 % of the time with CUDA graphs or fewer breaks (estimate)";
    } else {
        finding.settings = cures("F10", context.facts);
    }
    ReplayChange change;
    change.scale(Cause::launch) = change.scale(Cause::optimizer) = kCompiled;
    // Slow launching means many short calls; few long ones are start-up or work on the CPU.
    std::vector<LateGap> few = few_gaps(context, late);
    if (context.has_operators && returns_in_steps(context, few)) {
        LongOperator longest = operator_in(context, few);
        std::string name = longest.event < 0 ? "operators"
                                             : std::string(context.trace.name(context.event(
                                                   static_cast<std::size_t>(longest.event))));
        finding.confidence = Confidence::low;
        finding.evidence = fmt::format(
            "the GPU idles {:.1f} % of the recorded time while the host is inside operators, most "
            "of it in few long waits of every step: {} ({:.1f} ms in all)",
            context.percent(late), name, static_cast<double>(longest.time_ns) / 1e6);
        finding.fix = fmt::format(
            "{} works on the host there: do it with fewer and larger tensors, once before the "
            "loop, or on the GPU",
            name);
        finding.settings.clear();
        finding.assumes = "60 % of it can be avoided (estimate)";
        if (longest.event >= 0)
            finding.examples.push_back(context.example(static_cast<std::size_t>(longest.event)));
    } else if ((count < 200 && host > count * 1'000'000) || !few.empty()) {
        finding.confidence = Confidence::low;
        finding.optional = true;
        finding.surer = "record a later part: these few, long calls look like start-up";
    }
    if (is_nameless) {
        finding.confidence = Confidence::low;
        finding.evidence = fmt::format(
            "the GPU idles {:.1f} % of the recorded time between launches; operators were not "
            "recorded, so launching and Python cannot be told apart",
            context.percent(late));
        finding.surer = "record with ProfilerActivity.CPU";
        change.scale(Cause::python) = change.scale(Cause::host) = kCompiled;
    }
    if (!context.add(finding, change, late)) return;
    ReplayChange best = change;
    best.scale(Cause::launch) = best.scale(Cause::optimizer) = kCaptured;
    context.most.emplace_back(finding.id, best);
    if (!finding.optional && few.empty() && !has_graphs) captured_step(context, finding, late);
}

// Removes the address: "<built-in method copy_ of Tensor object at 0x7f12>" is the same function
// for every tensor.
std::string frame_text(std::string_view name) {
    std::size_t address = name.find("0x");
    if (address == name.npos || !name.substr(0, address).ends_with(" at "))
        return std::string(name);
    std::string_view before = name.substr(0, address);
    for (std::string_view word : {" at ", " object"}) {
        if (before.ends_with(word)) before.remove_suffix(word.size());
    }
    std::size_t behind = name.find_first_not_of("0123456789abcdef", address + 2);
    return std::string(before) + std::string(behind == name.npos ? "" : name.substr(behind));
}

// Maps all names with the same frame text to one of them; looks at each name once.
class FrameNames {
  public:
    explicit FrameNames(const Trace& trace) : trace_(trace), known_(trace.names.size(), kNew) {}
    std::uint32_t of(std::uint32_t name) {
        std::uint32_t& known = known_[name];
        if (known == kNew)
            known = by_text_.try_emplace(frame_text(trace_.names.text(name)), name).first->second;
        return known;
    }

  private:
    static constexpr std::uint32_t kNew = 0xffffffff;
    const Trace& trace_;
    std::vector<std::uint32_t> known_;
    std::unordered_map<std::string, std::uint32_t> by_text_;
};

// A frame or range in which the host spends time while the GPU idles.
struct IdleFrame {
    std::int64_t idle_ns = 0;
    std::int64_t own_ns = 0;  // of the host, also while the GPU works
    std::int32_t event = -1;
    std::uint32_t name = 0;  // as FrameNames::of() returns it
};

std::vector<IdleFrame> idle_frames(const Context& context, FrameNames& names) {
    std::map<std::uint32_t, IdleFrame> by_name;
    std::size_t at_gap = 0;
    for (const Activity& activity : context.line.host) {
        if (activity.cause != Cause::python || activity.event < 0) continue;
        std::uint32_t name = names.of(context.event(static_cast<std::size_t>(activity.event)).name);
        IdleFrame& frame = by_name[name];
        frame.name = name;
        frame.event = activity.event;
        frame.own_ns += activity.end_ns - activity.start_ns;
        if (context.line.device < 0) {
            frame.idle_ns = frame.own_ns;
            continue;
        }
        while (at_gap < context.line.gaps.size() &&
               context.line.gaps[at_gap].end_ns <= activity.start_ns)
            ++at_gap;
        for (std::size_t i = at_gap; i < context.line.gaps.size(); ++i) {
            const Gap& gap = context.line.gaps[i];
            if (gap.start_ns >= activity.end_ns) break;
            frame.idle_ns +=
                std::min(gap.end_ns, activity.end_ns) - std::max(gap.start_ns, activity.start_ns);
        }
    }
    std::vector<IdleFrame> frames;
    for (const auto& [name, frame] : by_name) frames.push_back(frame);
    std::ranges::sort(frames, std::greater<>(), &IdleFrame::idle_ns);
    return frames;
}

// True if one function or range takes most of the idle time and calls nothing else, such as a sleep
// or a download. The fix removes such a call as a whole, instead of speeding it up.
bool is_one_thing(const Context& context, const IdleFrame& frame, FrameNames& names) {
    if (10 * frame.idle_ns < 8 * context.line.split.idle_ns) return false;
    std::int64_t whole = 0;
    for (const Event& event : context.trace.events) {
        if (event.start_ns < context.line.end_ns && names.of(event.name) == frame.name)
            whole += event.duration_ns;
    }
    return 10 * frame.own_ns >= 8 * whole;
}

// The share of Python time between operators that remains after a fix (estimate).
constexpr double kPythonLeft = 0.3;

void python_between(Context& context, const CauseTimes& causes) {
    std::int64_t late = at(causes, Cause::python) + at(causes, Cause::host);
    if (context.percent(late) < 10) return;
    if (context.line.device >= 0 && !context.has_operators) return;  // F10 reports it
    FrameNames names(context.trace);
    std::vector<IdleFrame> frames = idle_frames(context, names);
    Finding finding{.id = "F11", .share_percent = context.percent(late)};
    finding.confidence = context.trace.has_stacks ? Confidence::high : Confidence::medium;
    finding.evidence = fmt::format(
        "{} {:.1f} % of the recorded time while the host is between operators",
        context.line.device < 0 ? "nothing is computed" : "the GPU idles", context.percent(late));
    for (std::size_t i = 0; i < std::min<std::size_t>(frames.size(), 3); ++i) {
        std::string text =
            fmt::format("{} ({:.1f} ms)", frame_text(context.trace.names.text(frames[i].name)),
                        static_cast<double>(frames[i].idle_ns) / 1e6);
        finding.examples.push_back(
            context.example(static_cast<std::size_t>(frames[i].event), text));
    }
    if (!context.trace.has_stacks) finding.surer = "with_stack=True shows the Python frames";
    std::int64_t head = 0;  // before the first work on the GPU
    for (const Gap& gap : context.line.gaps) {
        if (gap.head) head += at(gap.causes, Cause::python) + at(gap.causes, Cause::host);
    }
    if (!context.line.has_steps && 5 * head >= 4 * late) {
        finding.confidence = Confidence::low;
        finding.surer =
            "nearly all of it comes before the first work on the GPU: record several steps, to see "
            "whether it returns";
    }
    if (!context.is_training) finding.fix = "move Python work out of the loop";
    ReplayChange change;
    bool is_whole =
        !frames.empty() && context.line.device >= 0 && is_one_thing(context, frames[0], names);
    change.scale(Cause::python) = change.scale(Cause::host) = is_whole ? 0.0 : kPythonLeft;
    if (is_whole) {
        finding.fix = fmt::format("move {} out of the loop, or do it in another thread or process",
                                  frame_text(context.trace.names.text(frames[0].name)));
        finding.assumes = "all of it is removed";
    } else {
        finding.assumes = "70 % of it can be avoided (estimate)";
    }
    if (!context.add(finding, change, late)) return;
    change.scale(Cause::python) = change.scale(Cause::host) = 0.0;
    context.most.emplace_back(finding.id, change);
}

void tiny_kernels(Context& context) {
    std::int64_t count = 0, tiny = 0, time = 0, waits = 0;
    // The kernels of a CUDA graph are launched together: none of them waits for its own launch.
    for (std::size_t i = 0; i < context.line.gpu.size(); ++i) {
        const Event& kernel = context.event(context.line.gpu[i]);
        if (kernel.category != Category::kernel) continue;
        ++count;
        if (kernel.duration_ns >= kTinyKernel || is_in_graph(context, context.launch(i))) continue;
        ++tiny;
        time += kernel.duration_ns;
    }
    for (const Gap& gap : context.line.gaps) {
        if (gap.next < 0) continue;
        const Event& next = context.event(static_cast<std::size_t>(gap.next));
        if (next.category != Category::kernel || next.duration_ns >= kTinyKernel) continue;
        // A kernel's own launch takes microseconds; a longer wait is something else.
        constexpr std::int64_t kLongWait = 1'000'000;
        if (at(gap.causes, Cause::launch) >= kLongWait) continue;
        if (gap.launch >= 0 &&
            is_in_graph(context, &context.event(static_cast<std::size_t>(gap.launch))))
            continue;
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
        "recorded time",
        tiny, count, finding.share_percent);
    ReplayChange change;
    change.scale(Cause::launch) = change.scale(Cause::optimizer) = 0.6;
    change.gpu_scale = [&trace = context.trace](std::uint32_t event) {
        const Event& kernel = trace.events[event];
        return kernel.category == Category::kernel && kernel.duration_ns < kTinyKernel ? 0.5 : 1.0;
    };
    if (context.is_compiled) finding.fix = kCompiledFix;
    finding.assumes = "fused kernels take half the time and 40 % of the launches (estimate)";
    if (context.has("F10")) {
        double likely = std::min(context.replay.gain(change), context.most_gain(change));
        finding.gain = {1.0 + 0.6 * (likely - 1.0), likely, likely};
        context.add_part(finding, "F10");
    } else {
        context.add(finding, change, time + waits);
    }
}

}  // namespace

void find_launch(Context& context) {
    CauseTimes causes = before_work(context.line);
    launch_bound(context, causes);
    python_between(context, causes);
    tiny_kernels(context);
}

}  // namespace saturate
