// SPDX-License-Identifier: Apache-2.0
// What the rules over a trace share: the timeline, its replay, and questions that several of them
// ask. Rules are free functions `void f(Context&)`, grouped in findings_*.cpp; each adds what it
// found.
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

// Where a host event stands.
enum Inside : std::uint8_t {
    kInsideRead = 1,       // item(), nonzero(), ...: an operator that needs a value on the host
    kInsideOptimizer = 2,  // Optimizer.step
    kInsideZeroGrad = 4,   // Optimizer.zero_grad
    kInsideOp = 8,
};

// A finding that is not priced yet.
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
    std::vector<std::uint8_t> inside;   // beside Trace::events, for runtime calls
    std::vector<std::int32_t> read_op;  // beside Trace::events: the reading operator around a call
    std::optional<GpuFacts> gpu;
    const TraceDevice* device = nullptr;
    std::int64_t kernel_ns = 0;  // sum of kernel times, communication left out
    // What kind of job it is, so that the fixes fit.
    bool is_training = false;    // it has a backward pass or an optimizer
    bool is_compiled = false;    // torch.compile is in use
    bool has_loader = false;     // a DataLoader
    bool has_operators = false;  // recorded, on the threads that launch
    std::string optimizer;       // "AdamW"; empty: not seen
    Facts facts;  // what remedies are chosen by; of values in force a trace tells few
    std::vector<Finding> findings;
    std::vector<std::pair<std::string, ReplayChange>> changes;  // of the findings, by id
    std::vector<std::pair<std::string, ReplayChange>> most;  // the same at their best, where told
    Waits waits;
    std::vector<WaitingFinding> waiting;

    [[nodiscard]] const Event& event(std::size_t index) const { return trace.events[index]; }
    [[nodiscard]] double percent(std::int64_t ns) const { return line.percent(ns); }
    [[nodiscard]] double ms_per_step(std::int64_t ns) const;
    [[nodiscard]] double per_step(std::int64_t count) const;
    // "12 per step", or "240 in all" where steps are not known.
    [[nodiscard]] std::string rate_text(std::int64_t count) const;
    // The launch of the i-th GPU event of the timeline, or null.
    [[nodiscard]] const Event* launch(std::size_t i) const;
    [[nodiscard]] std::uint8_t launch_inside(std::size_t i) const;
    [[nodiscard]] Example example(std::size_t event, std::string text = "") const;
    // No change can make the window shorter than the work that is left on the GPU.
    [[nodiscard]] double most_gain(const ReplayChange& change) const;
    // Fills gain from the replay of `change` and the bound of leaving out `exposed_ns` altogether.
    // Below 1 % it is no finding, unless its share alone is worth saying.
    bool add(Finding finding, const ReplayChange& change, std::int64_t exposed_ns,
             bool always = false);
    // A finding whose calls wait for the GPU; settle_waits() adds it.
    void add_waiting(Finding finding, const ReplayChange& change, std::int64_t exposed_ns);
    // Without a replay: part of another finding.
    void add_part(Finding finding, std::string part_of);
    [[nodiscard]] bool has(std::string_view id) const;

  private:
    void learn_job();
    void learn_facts();
};

// The idle time of gaps in which the host first had to return from one of `calls` (sorted by
// start): from the end of the call to the end of the gap. Where the calls bring data to the host,
// what it does for long before it launches again is its work on the data.
enum class Brings { nothing, data };
[[nodiscard]] std::int64_t idle_after(const Timeline& line, const std::vector<std::uint32_t>& calls,
                                      Brings brings = Brings::nothing);

// The change that these GPU events (sorted) take `scale` of their time.
[[nodiscard]] ReplayChange scaling_works(std::vector<std::uint32_t> works, double scale);

constexpr std::int64_t kTinyKernel = 10'000;  // ns: about what its launch takes

// The change that the calls (sorted) wait no longer.
[[nodiscard]] ReplayChange unblocking(std::vector<std::uint32_t> calls);

// findings_*.cpp; in this order.
void find_input(Context& context);
void find_synchronisation(Context& context);
void settle_waits(Context& context);  // waits.cpp: prices the findings of the two before
void find_launch(Context& context);
void find_optimizer(Context& context);
void find_communication(Context& context);
void find_compute(Context& context);
void find_fusible(Context& context);  // findings_fusion.cpp, called by the one before
void find_habits(Context& context);
void find_pauses(Context& context);

}  // namespace saturate
