// SPDX-License-Identifier: Apache-2.0
// The data that all rules over a trace share: the timeline, its replay, and helpers that several
// rules need. A rule is a free function `void f(Context&)` in one of findings_*.cpp; each rule
// adds its findings to the context.
#pragma once

#include <optional>
#include <vector>

#include "diagnosis/finding.h"
#include "diagnosis/kernels.h"
#include "diagnosis/replay.h"
#include "diagnosis/timeline.h"
#include "diagnosis/waits.h"
#include "probe/gpu_table.h"
#include "remedies/facts.h"

namespace saturate {

// Flags: the kinds of operators and ranges around a host event.
enum Inside : std::uint8_t {
    kInsideRead = 1,       // item(), nonzero(), ...: an operator that needs a value on the host
    kInsideOptimizer = 2,  // Optimizer.step
    kInsideZeroGrad = 4,   // Optimizer.zero_grad
    kInsideOp = 8,
};

// A finding whose gain is not computed yet.
struct WaitingFinding {
    Finding finding;
    ReplayChange change;
    std::int64_t exposed_ns = 0;
};

struct Context {
    Context(const Timeline& timeline, const Replay& replay);

    const Trace& trace;
    const Timeline& line;
    const Replay& replay;
    KernelClasses classes;
    std::vector<std::uint8_t> inside;   // per event: Inside flags; for operators and calls
    std::vector<std::int32_t> read_op;  // per event: the reading operator around it, or -1
    std::optional<GpuFacts> gpu;
    const TraceDevice* device = nullptr;
    std::int64_t kernel_ns = 0;  // sum of kernel times without communication
    // The kind of job, so that the suggested fixes fit it.
    bool is_training = false;    // there is a backward pass or an optimizer
    bool is_compiled = false;    // torch.compile is in use
    bool has_loader = false;     // a DataLoader
    bool has_operators = false;  // operators were recorded on the launching threads
    std::string optimizer;       // "AdamW"; empty if none was seen
    Facts facts;                 // for choosing remedies; a trace shows few of the settings
    std::vector<Finding> findings;
    std::vector<std::pair<std::string, ReplayChange>> changes;  // finding id, its change
    std::vector<std::pair<std::string, ReplayChange>> most;     // the best case, if known
    Waits waits;
    std::vector<WaitingFinding> waiting;

    [[nodiscard]] const Event& event(std::size_t index) const { return trace.events[index]; }
    [[nodiscard]] double percent(std::int64_t ns) const { return line.percent(ns); }
    [[nodiscard]] double ms_per_step(std::int64_t ns) const;
    [[nodiscard]] double per_step(std::int64_t count) const;
    // Returns "12 per step", or "240 in all" if the steps are not known.
    [[nodiscard]] std::string rate_text(std::int64_t count) const;
    // Returns the call that launched the i-th GPU event of the timeline, or null.
    [[nodiscard]] const Event* launch(std::size_t i) const;
    [[nodiscard]] std::uint8_t launch_inside(std::size_t i) const;
    [[nodiscard]] Example example(std::size_t event, std::string text = "") const;
    // Returns the upper bound of the gain: the window cannot become shorter than the work that the
    // change leaves on the GPU.
    [[nodiscard]] double most_gain(const ReplayChange& change) const;
    // Adds a finding with its gain: from the replay of `change`, bounded by the gain of removing
    // `exposed_ns` completely. Drops a finding that gains less than 1 % unless `always` is set.
    bool add(Finding finding, const ReplayChange& change, std::int64_t exposed_ns,
             bool always = false);
    // Keeps a finding whose calls wait for the GPU; settle_waits() adds it later.
    void add_waiting(Finding finding, const ReplayChange& change, std::int64_t exposed_ns);
    // Adds a finding as part of another one, without a replay.
    void add_part(Finding finding, std::string part_of);
    [[nodiscard]] bool has(std::string_view id) const;

  private:
    void learn_job();
    void learn_facts();
};

// Returns the idle time of the gaps in which the host first had to return from one of `calls`
// (sorted by start): from the end of the call to the end of the gap. With Brings::data, long
// Python work before the next launch counts as work on the data and not as idle time of the call.
enum class Brings { nothing, data };
[[nodiscard]] std::int64_t idle_after(const Timeline& line, const std::vector<std::uint32_t>& calls,
                                      Brings brings = Brings::nothing);

// Returns the change that multiplies the durations of these GPU events (sorted) by `scale`.
[[nodiscard]] ReplayChange scaling_works(std::vector<std::uint32_t> works, double scale);

constexpr std::int64_t kTinyKernel = 10'000;  // ns: about as long as its launch takes

// Returns the change in which these calls (sorted) no longer wait for the GPU.
[[nodiscard]] ReplayChange unblocking(std::vector<std::uint32_t> calls);

// The rules, in findings_*.cpp; they run in this order.
void find_input(Context& context);
void find_synchronisation(Context& context);
void settle_waits(Context& context);  // waits.cpp: computes the gains of the two above
void find_launch(Context& context);
void find_optimizer(Context& context);
void find_communication(Context& context);
void find_compute(Context& context);
void find_fusible(Context& context);  // findings_fusion.cpp; find_compute() calls it
void find_habits(Context& context);
void find_pauses(Context& context);

}  // namespace saturate
