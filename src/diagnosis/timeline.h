// SPDX-License-Identifier: Apache-2.0
// The timeline of one GPU in a trace: the window, the work of the GPU in it, and the cause of each
// idle gap. Built once per trace; read by the replay, the findings and the HTML page.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnosis/trace.h"

namespace saturate {

// Why the GPU was idle. The order is the priority: if two causes cover the same time, the first one
// is charged. From `dependency` on, the host is not the reason.
enum class Cause : std::uint8_t {
    recording,   // a CUDA graph is being recorded: its launches run nothing
    startup,     // happens once: loading kernels, starting libraries, compiling
    input,       // the training thread waits for the DataLoader
    sync,        // a synchronising call
    allocator,   // cudaMalloc, cudaFree
    pause,       // checkpoint or evaluation
    compile,     // compilation, module loading
    optimizer,   // launching the optimizer's kernels
    launch,      // other operators: the host launches more slowly than the GPU works
    python,      // Python between operators
    host,        // nothing recorded: Python without stacks, or another process
    dependency,  // queued behind a copy or another stream
    latency,     // the usual time between a launch and its start
    graph,       // inside a CUDA graph whose nodes were not recorded: not idle, unknown
    unknown,     // no launch recorded, or the GPU starts late without a reason in the trace
};
inline constexpr std::size_t kCauses = static_cast<std::size_t>(Cause::unknown) + 1;
[[nodiscard]] std::string_view cause_key(Cause cause);   // "input", for JSON
[[nodiscard]] std::string_view cause_text(Cause cause);  // "waiting for data"
[[nodiscard]] inline bool is_idle(Cause cause) { return cause < Cause::graph; }
// True for causes that happen only once, so that later steps do not repeat them.
[[nodiscard]] inline bool is_one_off(Cause cause) { return cause <= Cause::startup; }

using CauseTimes = std::array<std::int64_t, kCauses>;  // nanoseconds
[[nodiscard]] inline std::int64_t& at(CauseTimes& times, Cause cause) {
    return times[static_cast<std::size_t>(cause)];
}
[[nodiscard]] inline std::int64_t at(const CauseTimes& times, Cause cause) {
    return times[static_cast<std::size_t>(cause)];
}

// What the host did over [start, end): the event of the highest priority that covers it.
struct Activity {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    Cause cause = Cause::host;
    std::int32_t event = -1;  // in Trace::events
};

struct Gap {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::int32_t next = -1;    // the GPU event that ends the gap; -1 for the tail
    std::int32_t launch = -1;  // the call that launched that event
    bool head = false;         // before the first GPU event of the window
    CauseTimes causes = {};    // add up to the length

    [[nodiscard]] std::int64_t length_ns() const { return end_ns - start_ns; }
    // Returns the length without one-offs.
    [[nodiscard]] std::int64_t steady_ns() const {
        return length_ns() - at(causes, Cause::recording) - at(causes, Cause::startup);
    }
    [[nodiscard]] Cause main_cause() const;  // the largest
};

// How the time of the window divides up. If several kinds of work overlap, the time counts once, by
// priority compute > communication > copy > set.
struct Split {
    std::int64_t compute_ns = 0;
    std::int64_t communication_ns = 0;
    std::int64_t memcpy_ns = 0;
    std::int64_t memset_ns = 0;
    std::int64_t idle_ns = 0;
    std::int64_t unknown_ns = 0;  // gaps that may be work that was not recorded

    [[nodiscard]] std::int64_t busy_ns() const {
        return compute_ns + communication_ns + memcpy_ns + memset_ns;
    }
};

struct Step {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::string name;  // "ProfilerStep#5", "Optimizer.step#SGD.step"
    Split split;
    CauseTimes causes = {};
    std::size_t kernels = 0;
    std::int64_t cut_ns = 0;  // part of it that is left out

    [[nodiscard]] std::int64_t length_ns() const { return end_ns - start_ns - cut_ns; }
};

// The kind of the time left out at the head of a trace that was cut out of a longer run.
inline constexpr std::string_view kBeforeOwnWork = "before the trace's own work";

// The kind of the time left out at the end of a program.
inline constexpr std::string_view kAfterWork = "after the last work on the GPU";

// A part of the recorded time that is left out: "start-up", "recording CUDA graphs" ...
struct UnsteadyTime {
    std::string kind;
    std::int64_t ns = 0;
};

// Figures on the recorded time and on the parts that are left out because a longer run does not
// repeat them.
struct SteadyPart {
    std::int64_t whole_ns = 0;       // all complete steps, or the whole trace
    std::int64_t whole_busy_ns = 0;  // busy time of the GPU in it
    std::int64_t startup_ns = 0;     // idle because of one-offs
    std::int64_t recording_ns = 0;   // idle because a CUDA graph is being recorded
    std::string startup_kinds;       // "loading kernels 52 %, ..."
    std::size_t recordings = 0;      // number of recorded CUDA graphs
    std::int64_t head_ns = 0;        // at the start, the GPU runs work launched before the trace
    std::vector<UnsteadyTime> left_out;  // adds up to whole minus steady

    [[nodiscard]] double percent(std::int64_t ns) const {
        return whole_ns > 0 ? 100.0 * static_cast<double>(ns) / static_cast<double>(whole_ns) : 0;
    }
    // Returns the percentage of the time without the head.
    [[nodiscard]] double share(std::int64_t ns) const {
        std::int64_t own = whole_ns - head_ns;
        return own > 0 ? 100.0 * static_cast<double>(ns) / static_cast<double>(own) : 0;
    }
};

struct Timeline {
    const Trace* trace = nullptr;
    int device = -1;                // the analysed GPU; -1: none in the trace
    std::vector<int> devices_used;  // devices with GPU events
    std::int64_t start_ns = 0;      // the window
    std::int64_t end_ns = 0;
    std::vector<Step>
        steps;  // in the window; a single one for the whole window if steps are not marked
    bool has_steps = false;           // the profiler or the optimizer marks them
    std::size_t steps_dropped = 0;    // at the start, because of profiler start-up
    bool is_first_step_long = false;  // it was dropped for its length alone
    Split split;
    CauseTimes causes = {};
    std::vector<Gap> gaps;
    std::vector<Activity> host;             // of the launching threads, without overlap
    std::vector<std::uint32_t> gpu;         // the device's events in the window, by start
    std::vector<std::int32_t> launch_of;    // per entry of `gpu`: the launching call, or -1
    std::vector<std::uint16_t> host_lanes;  // the launching threads
    // Idle time of the window because of one-offs, by start. If `cut`, it does not count as part of
    // the window.
    std::vector<Activity> one_offs;
    bool cut = false;
    std::int64_t cut_ns = 0;
    // Collectives for which all the other ranks waited (in Trace::events, by start), and for how
    // long at least. Known only if the other ranks' traces are there.
    std::vector<std::pair<std::uint32_t, std::int64_t>> awaited;
    SteadyPart steady;

    [[nodiscard]] std::int64_t length_ns() const { return end_ns - start_ns - cut_ns; }
    // Returns how much of [from, to) is cut.
    [[nodiscard]] std::int64_t cut_between(std::int64_t from, std::int64_t to) const;
    [[nodiscard]] bool is_in_one_off(const Event& event) const;  // at least half of it
    [[nodiscard]] double percent(std::int64_t ns) const;         // of the window
    [[nodiscard]] double busy_percent() const { return percent(split.busy_ns()); }
    // Returns the median length of the steps, or the length of the window if steps are not marked.
    [[nodiscard]] std::int64_t step_ns() const;
    [[nodiscard]] double step_count() const {
        return has_steps ? static_cast<double>(steps.size()) : 1;
    }
};

// The trace must outlive the timeline.
[[nodiscard]] Timeline make_timeline(const Trace& trace);

// Returns the user's own frame around an event ("train.py(62): <module>"), or "" if the trace has
// no stacks.
[[nodiscard]] std::string source_of(const Trace& trace, std::size_t event);

}  // namespace saturate
