// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/host.h"

#include <algorithm>

#include "base/text.h"
#include "diagnosis/kernels.h"

namespace saturate {
namespace {

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
    for (std::string_view part : parts) {
        if (text.find(part) != std::string_view::npos) return true;
    }
    return false;
}

Cause runtime_cause(std::string_view name) {
    if (is_synchronising(name)) return Cause::sync;
    if (is_allocating(name)) return Cause::allocator;
    if (is_module_load(name)) return Cause::compile;
    return Cause::launch;
}

// PyTorch records the ranges of its compiler as operators.
bool is_compiler_range(std::string_view name) {
    return name.ends_with("(dynamo_timed)") && !name.starts_with("CUDAGraphNode.record");
}

Cause op_cause(std::string_view name) {
    return is_compiler_range(name) ? Cause::compile : Cause::launch;
}

// True for frames that compile. `__call__` of a code cache, `run` of a compiled graph and `run` of
// an autotuner that has already chosen only execute compiled code.
bool is_compiler_frame(std::string_view name) {
    if (has_any(name,
                {"torch/_dynamo/convert_frame.py", "torch/_inductor/graph.py", "triton/compiler/"}))
        return true;
    if (!has_any(name, {"torch/_inductor/codecache.py", "torch/_inductor/compile_fx.py",
                        "triton/runtime/autotuner.py"}))
        return false;
    std::size_t colon = name.rfind(": ");
    return colon != std::string_view::npos &&
           has_any(name.substr(colon), {"compile", "codegen", "load", "write", "bench"});
}

bool is_pause_function(std::string_view function) {
    for (std::string_view name :
         {"evaluate", "validate", "validation_step", "eval_epoch", "validate_epoch",
          "save_checkpoint", "save_model", "evaluation_loop"}) {
        if (function == name) return true;
    }
    return false;
}

bool is_pause(std::string_view name) {
    std::string low = lower(name);
    return has_any(low, {"checkpoint", "evaluat", "validat", "torch.save"}) &&
           !has_any(low, {"utils/checkpoint.py", "checkpointfunction", "evaluate_function"});
}

Cause annotation_cause(std::string_view name) {
    if (name.starts_with("enumerate(DataLoader)#")) return Cause::input;
    if (name.starts_with("Optimizer.")) return Cause::optimizer;
    if (name.starts_with("ProfilerStep#")) return Cause::unknown;
    if (is_pause(name)) return Cause::pause;
    if (is_compiler_range(name) || has_any(name, {"CompileContext"})) return Cause::compile;
    return Cause::python;
}

Cause python_cause(std::string_view name) {
    if (has_any(name, {"torch/utils/data/dataloader.py"}) && name.ends_with(": __next__"))
        return Cause::input;
    if (is_compiler_frame(name)) return Cause::compile;
    if (has_any(name, {"torch/serialization.py"}) && name.ends_with(": save")) return Cause::pause;
    // Match function names only: not everything in a file evaluate.py is an evaluation.
    std::size_t colon = name.rfind(": ");
    if (colon != std::string_view::npos && is_pause_function(name.substr(colon + 2)))
        return Cause::pause;
    return Cause::python;
}

}  // namespace

HostCauses::HostCauses(const Trace& trace) : trace_(trace) {
    for (auto& known : by_name_) known.assign(trace.names.size(), 255);
    for (const Event& event : trace.events) {
        if (event.category == Category::memcpy && event.correlation &&
            trace.name(event).find("Pageable") != std::string_view::npos)
            blocking_.push_back(event.correlation);
        auto set = [&](int table, auto cause_of) {
            std::uint8_t& known = by_name_[table][event.name];
            if (known == 255) known = static_cast<std::uint8_t>(cause_of(trace.name(event)));
        };
        if (event.category == Category::op) set(0, op_cause);
        if (event.category == Category::runtime) set(1, runtime_cause);
        if (event.category == Category::annotation) set(2, annotation_cause);
        if (event.category == Category::python) set(3, python_cause);
    }
    std::ranges::sort(blocking_);
}

bool HostCauses::is_compiling(const Trace& trace, const Event& event) {
    std::string_view name = trace.name(event);
    if (event.category == Category::op || event.category == Category::annotation)
        return is_compiler_range(name);
    return event.category == Category::python && is_compiler_frame(name);
}

Cause HostCauses::of(std::size_t index) const {
    const Event& event = trace_.events[index];
    switch (event.category) {
        case Category::op:
            return static_cast<Cause>(by_name_[0][event.name]);
        case Category::runtime: {
            auto cause = static_cast<Cause>(by_name_[1][event.name]);
            if (cause == Cause::launch && event.correlation &&
                std::ranges::binary_search(blocking_, event.correlation))
                return Cause::sync;
            return cause;
        }
        case Category::annotation:
            return static_cast<Cause>(by_name_[2][event.name]);
        case Category::python:
            return static_cast<Cause>(by_name_[3][event.name]);
        default:
            return Cause::unknown;
    }
}

std::vector<Activity> host_activities(const Timeline& line) {
    const Trace& trace = *line.trace;
    std::int64_t start_ns = line.start_ns, end_ns = line.end_ns;
    struct Edge {
        std::int64_t time;
        std::uint32_t event;
        bool opens;
        std::uint8_t cause;
    };
    std::vector<bool> is_ours(trace.lanes.size());
    for (std::uint16_t lane : line.host_lanes) is_ours[lane] = true;
    HostCauses causes(trace);
    std::vector<Edge> edges;
    for (const Activity& one : line.one_offs) {
        auto code = static_cast<std::uint8_t>(one.cause);
        auto index = static_cast<std::uint32_t>(one.event);
        edges.push_back({std::max(one.start_ns, start_ns), index, true, code});
        edges.push_back({one.end_ns, index, false, code});
    }
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
        const Event& event = trace.events[i];
        if (!is_ours[event.lane] || event.start_ns >= end_ns || event.end_ns() <= start_ns ||
            event.duration_ns == 0)
            continue;
        Cause cause = causes.of(i);
        if (cause > Cause::host) continue;
        auto code = static_cast<std::uint8_t>(cause);
        auto index = static_cast<std::uint32_t>(i);
        edges.push_back({std::max(event.start_ns, start_ns), index, true, code});
        edges.push_back({std::min(event.end_ns(), end_ns), index, false, code});
    }
    std::ranges::stable_sort(edges, {}, &Edge::time);
    std::vector<Activity> out;
    // The open events of each cause, the innermost last. Time behind an inner one is the outer's.
    std::array<std::vector<std::uint32_t>, kCauses> open;
    std::int64_t since = start_ns;
    for (const Edge& edge : edges) {
        if (edge.time > since) {
            for (std::size_t cause = 0; cause < kCauses; ++cause) {
                if (open[cause].empty()) continue;
                auto event = static_cast<std::int32_t>(open[cause].back());
                if (!out.empty() && out.back().end_ns == since && out.back().event == event &&
                    out.back().cause == static_cast<Cause>(cause))
                    out.back().end_ns = edge.time;
                else
                    out.push_back({since, edge.time, static_cast<Cause>(cause), event});
                break;
            }
            since = edge.time;
        }
        std::vector<std::uint32_t>& same = open[edge.cause];
        if (edge.opens) {
            same.push_back(edge.event);
        } else if (auto last = std::ranges::find(same.rbegin(), same.rend(), edge.event);
                   last != same.rend()) {
            same.erase(std::next(last).base());
        }
    }
    return out;
}

Cause activity_at(std::span<const Activity> host, std::int64_t time_ns, std::size_t& hint) {
    while (hint < host.size() && host[hint].end_ns <= time_ns) ++hint;
    bool covers = hint < host.size() && host[hint].start_ns <= time_ns;
    return covers ? host[hint].cause : Cause::host;
}

void charge(std::span<const Activity> host, std::int64_t start_ns, std::int64_t end_ns,
            std::size_t& hint, CauseTimes& causes) {
    while (hint < host.size() && host[hint].end_ns <= start_ns) ++hint;
    std::int64_t at = start_ns;
    for (std::size_t i = hint; i < host.size() && host[i].start_ns < end_ns; ++i) {
        std::int64_t from = std::max(host[i].start_ns, at);
        std::int64_t to = std::min(host[i].end_ns, end_ns);
        if (to <= from) continue;
        saturate::at(causes, Cause::host) += from - at;
        saturate::at(causes, host[i].cause) += to - from;
        at = to;
    }
    if (end_ns > at) saturate::at(causes, Cause::host) += end_ns - at;
}

}  // namespace saturate
