// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/one_off.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "diagnosis/host.h"
#include "diagnosis/kernels.h"

namespace saturate {
namespace {

constexpr std::string_view kLoading = "loading kernels";
constexpr std::string_view kLibraries = "starting libraries and the driver";
constexpr std::string_view kFirstUse = "first use of an operator";
constexpr std::string_view kTrying = "trying convolution algorithms";
constexpr std::string_view kCompiling = "compiling";
constexpr std::string_view kRecording = "recording CUDA graphs";

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

bool is_loading(std::string_view call) {
    return is_module_load(call) || contains(call, "ModuleGetFunction") ||
           contains(call, "FuncGetAttributes") || contains(call, "Occupancy") ||
           call.starts_with("nvrtc") || call.starts_with("hiprtc");
}

bool is_driver_launch(std::string_view call) {
    return call.starts_with("cuLaunchKernel") || call.starts_with("hipModuleLaunchKernel");
}

bool may_try_algorithms(std::string_view op) {
    return contains(op, "convolution") || contains(op, "CachingAutotuner");
}

std::int64_t median(std::vector<std::int64_t>& values) {
    if (values.empty()) return 0;
    auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

class OneOffFinder {
  public:
    OneOffFinder(const Timeline& line, const IdleTimes& idle)
        : line_(line), trace_(*line.trace), idle_(idle), is_ours_(trace_.lanes.size()) {
        for (std::uint16_t lane : line.host_lanes) is_ours_[lane] = true;
    }

    std::vector<OneOff> find() {
        learn_launches();
        learn_calls();
        walk_threads();
        compiled_once();
        compiled_just_in_time();
        for (const OneOff& one : find_before_work(line_, idle_))
            add(one.start_ns, one.end_ns, one.kind, static_cast<std::size_t>(one.event));
        std::ranges::stable_sort(out_, {}, &OneOff::start_ns);
        return std::move(out_);
    }

  private:
    struct Open {
        std::uint32_t event;
        std::int64_t end_ns;
        std::int64_t own_ns;    // without inner operators and calls
        int event_waits = 0;    // number of inner *EventSynchronize calls
        bool is_first = false;  // it or an enclosing operator is the first of its name
        bool is_own_first = false;
    };
    struct FirstOp {
        std::uint32_t event = 0;
        std::int64_t own_ns = 0;
        std::int64_t later_ns = -1;  // the longest later one; -1: there is none
    };

    [[nodiscard]] const Event& event(std::size_t index) const { return trace_.events[index]; }
    [[nodiscard]] std::string_view name(std::size_t index) const {
        return trace_.name(trace_.events[index]);
    }

    void add(std::int64_t start, std::int64_t end, std::string_view kind, std::size_t index,
             Cause cause = Cause::startup) {
        start = std::max(start, line_.start_ns);
        end = std::min(end, line_.end_ns);
        if (end > start)
            out_.push_back({start, end, cause, kind, static_cast<std::int32_t>(index)});
    }
    // Adds a one-off only if the GPU idles during most of it.
    void add_idle(std::size_t index, std::string_view kind) {
        const Event& one = event(index);
        if (idle_.is_mostly_idle(one.start_ns, one.end_ns()))
            add(one.start_ns, one.end_ns(), kind, index);
    }

    // Learns which calls launch, and which of them launch their kernel for the first time.
    void learn_launches() {
        std::unordered_set<std::uint32_t> seen;  // kernels from before the window
        for (const Event& one : trace_.events) {
            if (one.start_ns >= line_.start_ns) break;
            if (one.category == Category::kernel) seen.insert(one.name);
        }
        std::vector<std::pair<std::int32_t, std::uint32_t>> launches;  // call, its kernel's name
        std::vector<std::int64_t> lengths;
        for (std::size_t i = 0; i < line_.gpu.size(); ++i) {
            if (line_.launch_of[i] < 0) continue;
            const Event& call = event(static_cast<std::size_t>(line_.launch_of[i]));
            if (call.category != Category::runtime) continue;
            lengths.push_back(call.duration_ns);
            launching_.insert(static_cast<std::uint32_t>(line_.launch_of[i]));
            const Event& work = event(line_.gpu[i]);
            if (work.category == Category::kernel)
                launches.emplace_back(line_.launch_of[i], work.name);
        }
        usual_launch_ns_ = median(lengths);
        std::ranges::sort(launches);
        for (const auto& [call, kernel] : launches) {
            if (seen.insert(kernel).second)
                first_launches_.insert(static_cast<std::uint32_t>(call));
        }
    }

    void learn_calls() {
        for (const Event& one : trace_.events) {
            if (!is_ours_[one.lane]) continue;
            if (one.category == Category::runtime) calls_[one.name].push_back(one.duration_ns);
            has_operators_ |= one.category == Category::op;
        }
    }

    [[nodiscard]] std::int64_t count_from(std::uint32_t call_name, std::int64_t length) {
        return std::ranges::count_if(calls_[call_name],
                                     [&](std::int64_t one) { return one >= length; });
    }

    void call(std::size_t index, const Open* around) {
        const Event& one = event(index);
        if (one.duration_ns < kMs) return;
        std::string_view text = trace_.name(one);
        auto id = static_cast<std::uint32_t>(index);
        if (first_launches_.contains(id) && one.duration_ns >= 20 * usual_launch_ns_) {
            add_idle(index, kLoading);
        } else if (is_loading(text)) {
            add_idle(index, kLoading);
        } else if (is_allocating(text)) {
            // cuBLAS and cuDNN call cudaFree when they start; in every step it is no one-off.
            // Without operators, only the length of the call tells them apart.
            bool is_first = around ? around->is_first : !has_operators_;
            if (one.duration_ns >= (around ? 2 : 20) * kMs && is_first &&
                count_from(one.name, one.duration_ns / 4) <= 4)
                add_idle(index, kLibraries);
        } else if (launching_.contains(id)) {
            // A full queue blocks a launch too, but then the GPU works.
            if (one.duration_ns >= 5 * kMs && one.duration_ns >= 50 * usual_launch_ns_ &&
                10 * one.duration_ns >= line_.end_ns - line_.start_ns && contains(text, "Launch"))
                add_idle(index, kLoading);
        } else if (one.duration_ns >= 5 * kMs && !is_synchronising(text) &&
                   !contains(text, "Memcpy") && !contains(text, "Memset") &&
                   !contains(text, "Capture")) {
            std::vector<std::int64_t>& all = calls_[one.name];
            if (all.size() <= 4 || one.duration_ns >= 50 * median(all)) add_idle(index, kLibraries);
        }
    }

    void close(const Open& open) {
        const Event& one = event(open.event);
        if (open.event_waits >= 2 && may_try_algorithms(trace_.name(one)))
            add(one.start_ns, one.end_ns(), kTrying, open.event);
        if (one.category != Category::op) return;
        FirstOp& first = first_ops_[one.name];
        if (open.is_own_first)
            first.own_ns = open.own_ns;
        else
            first.later_ns = std::max(first.later_ns, open.own_ns);
    }

    // One sweep with a stack per thread, which shows the operators around each call and operator.
    void walk_threads() {
        std::vector<std::vector<Open>> stacks(trace_.lanes.size());
        for (std::size_t i = 0; i < trace_.events.size(); ++i) {
            const Event& one = trace_.events[i];
            if (one.category == Category::overhead) {
                std::string_view text = trace_.name(one);
                if (contains(text, "Lazy Function Loading") || contains(text, "Module Loading"))
                    add_idle(i, kLoading);
            }
            bool is_call = one.category == Category::runtime;
            if (!is_ours_[one.lane] ||
                (!is_call && one.category != Category::op && one.category != Category::annotation))
                continue;
            std::vector<Open>& stack = stacks[one.lane];
            while (!stack.empty() && stack.back().end_ns <= one.start_ns) {
                close(stack.back());
                stack.pop_back();
            }
            if (!stack.empty() && one.category != Category::annotation)
                stack.back().own_ns -= one.duration_ns;
            if (is_call) {
                call(i, stack.empty() ? nullptr : &stack.back());
                if (trace_.name(one).ends_with("EventSynchronize")) {
                    for (Open& open : stack) ++open.event_waits;
                }
                capture(i, stack);
                continue;
            }
            Open open{static_cast<std::uint32_t>(i), one.end_ns(), one.duration_ns};
            if (one.category == Category::op) {
                auto [place, is_new] = first_ops_.try_emplace(one.name);
                if (is_new) place->second.event = static_cast<std::uint32_t>(i);
                open.is_own_first = is_new;
                open.is_first = is_new || (!stack.empty() && stack.back().is_first);
            } else {
                open.is_first = !stack.empty() && stack.back().is_first;
            }
            if (contains(trace_.name(one), "CUDAGraphNode.record")) record(i, i, stack);
            stack.push_back(open);
        }
        for (std::vector<Open>& stack : stacks) {
            for (; !stack.empty(); stack.pop_back()) close(stack.back());
        }
        for (const auto& [op, first] : first_ops_) first_use(first);
    }

    // Adds a recording; if a compiled region surrounds it, adds the whole region.
    void record(std::size_t first, std::size_t last, const std::vector<Open>& stack) {
        for (const Open& open : stack) {
            if (!is_compiled_region(name(open.event))) continue;
            first = last = open.event;
            break;
        }
        add(event(first).start_ns, event(last).end_ns(), kRecording, first, Cause::recording);
    }

    void capture(std::size_t index, const std::vector<Open>& stack) {
        const Event& one = event(index);
        std::string_view text = trace_.name(one);
        if (contains(text, "StreamBeginCapture")) {
            capture_began_[one.lane] = static_cast<std::uint32_t>(index);
            record(index, index, stack);
        } else if (contains(text, "StreamEndCapture") || contains(text, "GraphInstantiate")) {
            auto began = capture_began_.find(one.lane);
            record(began == capture_began_.end() ? index : began->second, index, stack);
            if (contains(text, "GraphInstantiate")) capture_began_.erase(one.lane);
        }
    }

    // Adds the own time of the first call of an operator if later calls do not need it.
    void first_use(const FirstOp& first) {
        const Event& op = event(first.event);
        bool is_long = first.later_ns < 0
                           ? first.own_ns >= 20 * kMs
                           : first.own_ns >= 5 * kMs && first.later_ns < first.own_ns / 10;
        // In a short trace, also a call that takes at least a quarter of the window.
        is_long |= first.later_ns >= 0 && first.own_ns >= kMs &&
                   first.later_ns < first.own_ns / 20 &&
                   4 * first.own_ns >= line_.end_ns - line_.start_ns;
        // An operator of PyTorch, not a range of the user: "aten::mm", "SumBackward0".
        bool is_torch = contains(trace_.name(op), "::") || contains(trace_.name(op), "Backward");
        if (!is_long || !is_torch) return;
        if (HostCauses::is_compiling(trace_, op)) return;
        std::vector<IdleSpan> pieces;
        std::int64_t at = op.start_ns, idle = 0;
        auto piece = [&](std::int64_t until) {
            if (until <= at) return;
            pieces.push_back({at, until});
            idle += idle_.within(at, until);
        };
        for (std::size_t i = first.event + 1; i < trace_.events.size(); ++i) {
            const Event& inner = event(i);
            if (inner.start_ns >= op.end_ns()) break;
            if (inner.lane != op.lane ||
                (inner.category != Category::op && inner.category != Category::runtime))
                continue;
            piece(inner.start_ns);
            at = std::max(at, inner.end_ns());
        }
        piece(op.end_ns());
        if (2 * idle < first.own_ns) return;
        for (const IdleSpan& one : pieces) add(one.start_ns, one.end_ns, kFirstUse, first.event);
    }

    // Adds compiling in the first step, or in the first half if steps are not known.
    void compiled_once() {
        std::int64_t until = line_.start_ns + (line_.end_ns - line_.start_ns) / 2;
        if (line_.has_steps) until = line_.steps.size() > 2 ? line_.steps[0].end_ns : 0;
        std::vector<std::int8_t> known(trace_.names.size(), -1);  // by name
        std::int64_t covered = 0;  // compiler frames are nested: only the outermost counts
        for (std::size_t i = 0; i < trace_.events.size(); ++i) {
            const Event& one = event(i);
            if (one.start_ns >= until) break;
            if (!is_ours_[one.lane] || is_gpu(one.category) || one.category > Category::python ||
                one.category == Category::runtime || one.end_ns() <= covered)
                continue;
            std::int8_t& is_one = known[one.name];
            if (is_one < 0) is_one = HostCauses::is_compiling(trace_, one);
            if (!is_one) continue;
            add(one.start_ns, one.end_ns(), kCompiling, i);
            covered = one.end_ns();
        }
    }

    // Without stacks the compiler is not visible, only the first launch of a compiled kernel.
    void compiled_just_in_time() {
        if (trace_.has_stacks) return;
        std::size_t next = 0;
        for (const IdleSpan& gap : idle_.spans()) {
            if (gap.length_ns() < 20 * kMs) continue;
            while (next < line_.gpu.size() && event(line_.gpu[next]).start_ns < gap.end_ns) ++next;
            if (next >= line_.gpu.size()) break;
            std::int32_t launch = line_.launch_of[next];
            if (launch < 0 || !first_launches_.contains(static_cast<std::uint32_t>(launch)) ||
                !is_driver_launch(name(static_cast<std::size_t>(launch))))
                continue;
            add(std::max(gap.start_ns, data_came_before(gap.end_ns)), gap.end_ns, kCompiling,
                static_cast<std::size_t>(launch));
        }
    }

    // Returns the end of the last wait for data that began before `time`.
    [[nodiscard]] std::int64_t data_came_before(std::int64_t time) const {
        std::int64_t end = 0;
        for (const Event& one : trace_.events) {
            if (one.start_ns >= time) break;
            if (one.category == Category::annotation &&
                trace_.name(one).starts_with("enumerate(DataLoader)#"))
                end = std::max(end, one.end_ns());
        }
        return end;
    }

    const Timeline& line_;
    const Trace& trace_;
    const IdleTimes& idle_;
    std::vector<bool> is_ours_;
    std::unordered_set<std::uint32_t> launching_;
    std::unordered_set<std::uint32_t> first_launches_;
    std::unordered_map<std::uint32_t, std::vector<std::int64_t>> calls_;  // lengths by name
    std::unordered_map<std::uint32_t, FirstOp> first_ops_;                // by name
    std::unordered_map<std::uint16_t, std::uint32_t> capture_began_;      // by thread
    std::int64_t usual_launch_ns_ = 0;
    bool has_operators_ = false;
    std::vector<OneOff> out_;
};

}  // namespace

bool is_compiled_region(std::string_view name) {
    return name.starts_with("Torch-Compiled Region") || name.starts_with("CompiledFunction") ||
           name.starts_with("## Call CompiledFxGraph");
}

std::vector<OneOff> find_one_offs(const Timeline& line, const IdleTimes& idle) {
    return OneOffFinder(line, idle).find();
}

}  // namespace saturate
