// SPDX-License-Identifier: Apache-2.0
// H1-H6, and notes on the events that the reader dropped or repaired.
#include <fmt/format.h>

#include <algorithm>

#include "diagnosis/diagnosis.h"
#include "diagnosis/kernels.h"

namespace saturate {
namespace {

// How to record what is missing, for each profiler.
struct RecordingAdvice {
    const char* steps;
    const char* later;
    const char* launches;
};
constexpr RecordingAdvice kPyTorch = {
    "record with a schedule of wait 1, warm-up 1, active 5 or more (saturate diagnose --how)",
    "record a later part: a schedule with wait and warm-up steps (saturate diagnose --how)",
    "record with ProfilerActivity.CPU as well"};
constexpr RecordingAdvice kNsys = {
    "mark them: torch.cuda.nvtx.range_push(\"step 1\") and range_pop() around each",
    "record a later part: nsys profile --delay, or --capture-range=cudaProfilerApi",
    "start recording before the work, with --trace=cuda"};
const RecordingAdvice& advice_for(const Timeline& line) {
    return line.trace->kind == TraceKind::nsys ? kNsys : kPyTorch;
}

void recording(const Timeline& line, std::vector<HealthNote>& notes) {
    if (!line.has_steps) {
        notes.push_back({"H1", "steps are not marked: the trace is taken as one piece",
                         advice_for(line).steps});
        return;
    }
    if (line.steps_dropped > 0)
        notes.push_back({"H1",
                         line.is_first_step_long
                             ? "the first step was dropped: it is over twice as long as the others"
                             : "the first step was dropped: it contains the start of the profiler",
                         ""});
    std::int64_t overhead = 0;
    for (const Event& event : line.trace->events) {
        if (event.category == Category::overhead && event.start_ns >= line.start_ns &&
            event.start_ns < line.end_ns)
            overhead += event.duration_ns;
    }
    if (line.percent(overhead) > 5)
        notes.push_back({"H1",
                         fmt::format("the profiler itself takes {:.0f} % of the recorded time",
                                     line.percent(overhead)),
                         advice_for(line).steps});
}

void graphs(const Timeline& line, std::vector<HealthNote>& notes) {
    std::int64_t gaps = line.split.idle_ns + line.split.unknown_ns;
    std::int64_t inside = at(line.causes, Cause::graph);
    if (inside * 2 <= gaps || line.percent(inside) < 5) return;
    notes.push_back(
        {"H2",
         fmt::format("{:.0f} % of the recorded time lies inside CUDA graphs whose nodes were not "
                     "recorded: unknown, not idle",
                     line.percent(inside)),
         "record graph nodes: a newer PyTorch and driver, or nsys --cuda-graph-trace=node"});
}

// True if the host was recorded: launches are then missing because they came before the trace.
bool has_calls(const Trace& trace) {
    return std::ranges::any_of(
        trace.events, [](const Event& event) { return event.category == Category::runtime; });
}

void launches(const Timeline& line, std::vector<HealthNote>& notes) {
    if (line.gpu.empty()) return;
    std::ptrdiff_t missing = std::ranges::count(line.launch_of, -1);
    double share = 100.0 * static_cast<double>(missing) / static_cast<double>(line.gpu.size());
    if (share > 5)
        notes.push_back(
            {"H3",
             fmt::format(
                 "{:.0f} % of the GPU events have no launch: their waits cannot be explained",
                 share),
             has_calls(*line.trace) ? "" : advice_for(line).launches});
    if (std::size_t early = starts_before_launch(line); early > 0)
        notes.push_back(
            {"H3",
             fmt::format(
                 "{} kernels start before their launch: the clocks of host and GPU disagree, so "
                 "times between them are uncertain",
                 early),
             ""});
    std::size_t without = 0;
    for (const Step& step : line.steps) without += step.kernels == 0;
    if (without > 0 && line.has_steps)
        notes.push_back(
            {"H3", fmt::format("{} of {} steps contain no kernel", without, line.steps.size()),
             ""});
}

// H4 to H6: one-offs, and a head with work launched before the trace.
void one_offs(const Timeline& line, std::vector<HealthNote>& notes) {
    const SteadyPart& steady = line.steady;
    double startup = steady.share(steady.startup_ns);
    double recording = steady.share(steady.recording_ns);
    bool is_left_out =
        line.cut || std::ranges::any_of(steady.left_out, [](const UnsteadyTime& part) {
            return part.kind == "start-up" || part.kind == "recording CUDA graphs";
        });
    std::string treated = is_left_out ? "left out below" : "too little to leave it out";
    if (startup >= 5)
        notes.push_back({"H4",
                         fmt::format("{:.0f} % of the recorded time is start-up and happens once "
                                     "({}); {}",
                                     startup, steady.startup_kinds, treated),
                         advice_for(line).later});
    if (recording >= 15)
        notes.push_back(
            {"H5",
             fmt::format("{:.0f} % of the recorded time goes into recording CUDA graphs ({} "
                         "recording{}): nothing runs meanwhile; {}",
                         recording, steady.recordings, steady.recordings == 1 ? "" : "s", treated),
             "trace a later call, when the graphs are replayed"});
    if (steady.percent(steady.head_ns) >= 1)
        notes.push_back(
            {"H6",
             fmt::format("the first {:.1f} ms ({:.0f} %) are left out: the GPU still works on what "
                         "was launched before the trace begins",
                         static_cast<double>(steady.head_ns) / 1e6, steady.percent(steady.head_ns)),
             ""});
}

void losses(const Trace& trace, std::vector<HealthNote>& notes) {
    const TraceLosses& lost = trace.losses;
    if (lost.truncated)
        notes.push_back({"H3", "the file ends in the middle: what follows is missing",
                         "let the profiler finish writing"});
    if (lost.lost() > 0)
        notes.push_back(
            {"H3", fmt::format("events that could not be read and were left out: {}", lost.lost()),
             ""});
    if (lost.negative_durations > 0)
        notes.push_back({"H3",
                         fmt::format("events with a negative duration, which count as 0: {}",
                                     lost.negative_durations),
                         ""});
    if (lost.repaired_events > 0)
        notes.push_back(
            {"note",
             fmt::format("{} events with control characters or stray quotes were repaired",
                         lost.repaired_events),
             ""});
    if (lost.skipped_ranges > 0)
        notes.push_back({"note",
                         fmt::format("{} begin or end events have no partner and were left out",
                                     lost.skipped_ranges),
                         ""});
}

}  // namespace

std::size_t starts_before_launch(const Timeline& line) {
    std::size_t far = 0, early = 0;
    for (std::size_t i = 0; i < line.gpu.size(); ++i) {
        if (line.launch_of[i] < 0) continue;
        std::int64_t by = line.trace->events[static_cast<std::size_t>(line.launch_of[i])].start_ns -
                          line.trace->events[line.gpu[i]].start_ns;
        far += by > 1'000'000;
        early += by > 20'000;
    }
    return 20 * early >= line.gpu.size() ? early : far;
}

std::size_t unseen_launches(const Timeline& line) {
    if (line.device >= 0) return 0;
    return static_cast<std::size_t>(
        std::ranges::count_if(line.trace->events, [&](const Event& event) {
            return event.category == Category::runtime && is_launch(line.trace->name(event));
        }));
}

std::string gpu_operator(const Timeline& line) {
    if (line.device >= 0) return "";
    for (const Event& event : line.trace->events) {
        if (event.category != Category::op && event.category != Category::annotation) continue;
        std::string_view name = line.trace->name(event);
        for (std::string_view part : {"::cudnn_", "::miopen_", "nccl:", "aten::pin_memory"}) {
            if (name.find(part) != name.npos) return std::string(name);
        }
    }
    return "";
}

std::vector<HealthNote> trace_health(const Timeline& line) {
    std::vector<HealthNote> notes;
    recording(line, notes);
    one_offs(line, notes);
    graphs(line, notes);
    launches(line, notes);
    losses(*line.trace, notes);
    return notes;
}

}  // namespace saturate
