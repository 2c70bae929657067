// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/context.h"

#include <fmt/format.h>

#include <algorithm>

#include "diagnosis/one_off.h"

namespace saturate {
namespace {

bool reads_value(std::string_view op) {
    for (std::string_view name :
         {"aten::item", "aten::_local_scalar_dense", "aten::nonzero", "aten::is_nonzero",
          "aten::equal", "aten::masked_select", "aten::unique", "aten::_unique2"}) {
        if (op == name) return true;
    }
    return false;
}

// One sweep over the events, with a stack of open operators and ranges per thread.
void mark_inside(const Trace& trace, std::vector<std::uint8_t>& inside,
                 std::vector<std::int32_t>& read_op) {
    struct Open {
        std::int64_t end_ns;
        std::uint8_t flags;
        std::int32_t read;
    };
    std::vector<std::vector<Open>> stacks(trace.lanes.size());
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
        const Event& event = trace.events[i];
        if (event.category != Category::op && event.category != Category::annotation &&
            event.category != Category::runtime)
            continue;
        std::vector<Open>& stack = stacks[event.lane];
        while (!stack.empty() && stack.back().end_ns <= event.start_ns) stack.pop_back();
        Open state = stack.empty() ? Open{0, 0, -1} : stack.back();
        inside[i] = state.flags;
        read_op[i] = state.read;
        if (event.category == Category::runtime) continue;
        state.end_ns = event.end_ns();
        std::string_view name = trace.name(event);
        if (event.category == Category::op) {
            state.flags |= kInsideOp;
            if (!(state.flags & kInsideRead) && reads_value(name)) {
                state.flags |= kInsideRead;
                state.read = static_cast<std::int32_t>(i);
            }
        } else if (name.starts_with("Optimizer.step")) {
            state.flags |= kInsideOptimizer;
        } else if (name.starts_with("Optimizer.zero_grad")) {
            state.flags |= kInsideZeroGrad;
        }
        stack.push_back(state);
    }
}

}  // namespace

Context::Context(const Timeline& timeline, const Replay& replayed)
    : trace(*timeline.trace),
      line(timeline),
      replay(replayed),
      classes(trace),
      inside(trace.events.size()),
      read_op(trace.events.size(), -1) {
    mark_inside(trace, inside, read_op);
    device = trace.device(line.device);
    if (device == nullptr && !trace.devices.empty()) device = &trace.devices.front();
    if (device) {
        auto match = match_gpu(device->name, device->capability, device->memory_bytes);
        // Only NVIDIA's cards can be identified by capability; AMD numbers its own differently.
        bool is_amd = device->name.find("AMD") != std::string::npos;
        if (match && !(is_amd && match->kind == GpuMatchKind::capability)) gpu = match->facts;
    }
    for (std::uint32_t index : line.gpu) {
        const Event& kernel = event(index);
        if (kernel.category == Category::kernel && classes.of(kernel) != KernelClass::communication)
            kernel_ns += kernel.duration_ns;
    }
    learn_job();
    learn_facts();
    waits = find_waits(*this);
}

void Context::learn_facts() {
    facts = {.cores = 0, .on_cpu = line.device < 0, .gpu = gpu};
    if (facts.on_cpu || !device) return;
    auto is_from = [&](Capability least) {
        return !device->capability || *device->capability >= least;
    };
    facts.has_bf16 = device->capability && is_from({8, 0});
    facts.has_tf32 = facts.has_bf16;
    facts.has_fp16 = facts.can_compile = is_from({7, 0});
}

// Judges by names and looks at each name once.
void Context::learn_job() {
    std::vector<bool> is_ours(trace.lanes.size()), is_known(trace.names.size());
    for (std::uint16_t lane : line.host_lanes) is_ours[lane] = true;
    for (const Event& one : trace.events) {
        bool is_op = one.category == Category::op;
        has_operators |= is_op && is_ours[one.lane];
        if (is_known[one.name]) continue;
        is_known[one.name] = true;
        std::string_view name = trace.name(one);
        bool is_range = is_op || one.category == Category::annotation;
        if (is_op && name.find("Backward") != name.npos) is_training = true;
        if (is_range && is_compiled_region(name)) is_compiled = true;
        if (one.category == Category::kernel && name.starts_with("triton_")) is_compiled = true;
        if (one.category == Category::annotation && name.starts_with("Optimizer.step#")) {
            is_training = true;
            name.remove_prefix(std::string_view("Optimizer.step#").size());
            if (optimizer.empty()) optimizer = name.substr(0, name.find('.'));
        }
        if (name.starts_with("enumerate(DataLoader)#") ||
            (one.category == Category::python &&
             name.find("torch/utils/data/dataloader.py") != name.npos))
            has_loader = true;
    }
}

double Context::ms_per_step(std::int64_t ns) const {
    return static_cast<double>(ns) / 1e6 / line.step_count();
}

double Context::per_step(std::int64_t count) const {
    return static_cast<double>(count) / line.step_count();
}

std::string Context::rate_text(std::int64_t count) const {
    double each = per_step(count);
    return line.has_steps ? fmt::format("{:.{}f} per step", each, each < 10 ? 1 : 0)
                          : "in the whole trace";
}

const Event* Context::launch(std::size_t i) const {
    return line.launch_of[i] >= 0 ? &event(static_cast<std::size_t>(line.launch_of[i])) : nullptr;
}

std::uint8_t Context::launch_inside(std::size_t i) const {
    return line.launch_of[i] >= 0 ? inside[static_cast<std::size_t>(line.launch_of[i])] : 0;
}

Example Context::example(std::size_t index, std::string text) const {
    Example out;
    out.time_ns = event(index).start_ns;
    out.text = text.empty() ? std::string(trace.name(event(index)).substr(0, 80)) : std::move(text);
    out.source = source_of(trace, index);
    return out;
}

double Context::most_gain(const ReplayChange& change) const {
    if (line.device < 0) return 1e9;
    auto left = static_cast<double>(line.split.busy_ns() + line.split.unknown_ns);
    if (change.gpu_scale) {
        for (std::uint32_t index : line.gpu)
            left -= static_cast<double>(event(index).duration_ns) *
                    (1.0 - std::min(1.0, change.gpu_scale(index)));
    }
    auto whole = static_cast<double>(line.length_ns());
    return std::max(1.0, whole / std::max(left, 0.01 * whole));
}

bool Context::add(Finding finding, const ReplayChange& change, std::int64_t exposed_ns,
                  bool always) {
    double most = most_gain(change);
    double likely = std::min(replay.gain(change), most);
    double left = 1.0 - percent(exposed_ns) / 100.0;
    double bound = std::min(left > 0.01 ? 1.0 / left : 100.0, most);
    finding.gain = {1.0 + 0.6 * (likely - 1.0), likely, std::max(likely, bound)};
    if (finding.share_percent == 0) finding.share_percent = percent(exposed_ns);
    if (finding.ms_per_step == 0) finding.ms_per_step = ms_per_step(exposed_ns);
    if (finding.gain.likely < 1.01 && !always) return false;
    if (replay.error_percent() > 5 && finding.confidence == Confidence::high)
        finding.confidence = Confidence::medium;
    changes.emplace_back(finding.id, change);
    findings.push_back(std::move(finding));
    return true;
}

void Context::add_waiting(Finding finding, const ReplayChange& change, std::int64_t exposed_ns) {
    waiting.push_back({std::move(finding), change, exposed_ns});
}

void Context::add_part(Finding finding, std::string part_of) {
    finding.part_of = std::move(part_of);
    findings.push_back(std::move(finding));
}

bool Context::has(std::string_view id) const {
    return std::ranges::any_of(findings, [&](const Finding& finding) { return finding.id == id; });
}

ReplayChange scaling_works(std::vector<std::uint32_t> works, double scale) {
    ReplayChange change;
    change.gpu_scale = [works = std::move(works), scale](std::uint32_t event) {
        return std::ranges::binary_search(works, event) ? scale : 1.0;
    };
    return change;
}

ReplayChange unblocking(std::vector<std::uint32_t> calls) {
    ReplayChange change;
    change.unblock = [calls = std::move(calls)](std::uint32_t event) {
        return std::ranges::binary_search(calls, event);
    };
    return change;
}

std::int64_t idle_after(const Timeline& line, const std::vector<std::uint32_t>& calls,
                        Brings brings) {
    std::int64_t idle = 0;
    std::size_t next = 0;
    constexpr std::int64_t kSlack = 20'000;  // a call returns this soon after the GPU is done
    for (const Gap& gap : line.gaps) {
        if (gap.next < 0) continue;
        while (next < calls.size() && line.trace->events[calls[next]].end_ns() < gap.start_ns)
            ++next;
        if (next >= calls.size()) break;
        std::int64_t returned = line.trace->events[calls[next]].end_ns();
        if (returned >= gap.end_ns) continue;
        // Only the first call of the gap counts: the later ones find the GPU already idle. Time
        // that the host spent for other causes belongs to those causes.
        std::int64_t from = returned - gap.start_ns < kSlack ? gap.start_ns : returned;
        std::int64_t others = 0;
        for (Cause cause : {Cause::recording, Cause::startup, Cause::input, Cause::allocator,
                            Cause::pause, Cause::compile, Cause::graph, Cause::unknown})
            others += at(gap.causes, cause);
        constexpr std::int64_t kLongWork = 1'000'000;
        std::int64_t work = at(gap.causes, Cause::python) + at(gap.causes, Cause::host);
        if (brings == Brings::data && work >= kLongWork) others += work;
        idle += std::max<std::int64_t>(gap.end_ns - from - others, 0);
    }
    return idle;
}

}  // namespace saturate
