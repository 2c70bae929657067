// SPDX-License-Identifier: Apache-2.0
// F33: the GPU is busy with runs of element-wise kernels, each of which reads the output of the one
// before. A fused run reads its inputs and writes its outputs only once.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "diagnosis/context.h"

namespace saturate {
namespace {

// In percent. Busy trainings that gain little spend at most 33 % of kernel time in such runs
// (ResNets, whose norms cannot be fused anyway); jobs that gain spend 47 % and more.
constexpr double kShareFrom = 40, kBusyFrom = 60;

struct Runs {
    std::int64_t all_ns = 0;  // all fusible kernels, in runs or alone
    std::int64_t ns = 0;
    std::int64_t kernels = 0;
    std::int64_t count = 0;
    std::unordered_map<std::uint32_t, float> short_scale;  // kernel, its scale if its run is fused
    std::unordered_map<std::uint32_t, float> safe_scale;   // ... if fusing saves the least
    std::vector<std::uint32_t> works;
    std::uint32_t longest = 0;
    std::int64_t most_ns = -1;

    void add(const Context& context, const std::vector<std::uint32_t>& run) {
        if (run.size() < 2) return;
        ++count;
        auto length = [&](std::size_t i) { return context.event(run[i]).duration_ns; };
        std::size_t top = 0;
        for (std::size_t i = 0; i < run.size(); ++i) {
            ns += length(i);
            works.push_back(run[i]);
            if (length(i) > length(top)) top = i;
        }
        kernels += static_cast<std::int64_t>(run.size());
        if (length(top) > most_ns) {
            most_ns = length(top);
            longest = run[top];
        }
        for (std::size_t i = 0; i < run.size(); ++i) {
            short_scale[run[i]] = i == top ? 1.0f : 0.0f;
            // One neighbour writes the data that the next one reads. That is at most nearly half of
            // the bytes that the shorter of the two moves, namely its input or its output.
            double saved = 0;
            if (i > 0) saved += 0.4 * static_cast<double>(std::min(length(i - 1), length(i)));
            if (i + 1 < run.size())
                saved += 0.4 * static_cast<double>(std::min(length(i), length(i + 1)));
            double whole = static_cast<double>(std::max<std::int64_t>(length(i), 1));
            safe_scale[run[i]] = static_cast<float>(1.0 - saved / whole);
        }
    }
};

Runs find_runs(Context& context) {
    Runs runs;
    std::unordered_map<std::uint16_t, std::vector<std::uint32_t>> open;  // by stream
    for (std::uint32_t index : context.line.gpu) {
        const Event& event = context.event(index);
        std::vector<std::uint32_t>& run = open[event.lane];
        bool is_memset = event.category == Category::memset;
        bool fuses = is_memset ||
                     (event.category == Category::kernel && is_fusible(context.classes.of(event)));
        if (!fuses) {
            runs.add(context, run);
            run.clear();
        } else if (!is_memset) {
            // The same kernel twice in a row is a loop over tensors, which cannot be fused.
            if (!run.empty() && context.event(run.back()).name == event.name) {
                runs.add(context, run);
                run.clear();
            }
            run.push_back(index);
            runs.all_ns += event.duration_ns;
        }
    }
    for (const auto& [lane, run] : open) runs.add(context, run);
    std::ranges::sort(runs.works);
    return runs;
}

std::int64_t bytes_of(std::string_view type) {
    for (std::string_view one : {"Half", "BFloat16", "short"}) {
        if (type.find(one) != type.npos) return 2;
    }
    for (std::string_view one : {"double", "long"}) {
        if (type.find(one) != type.npos) return 8;
    }
    for (std::string_view one : {"bool", "char", "Float8"}) {
        if (type.find(one) != type.npos) return 1;
    }
    return type.find("float") != type.npos || type.find("int") != type.npos ? 4 : 0;
}

// Returns the bytes of the inputs, given as "[[8,128],[],[8,128]]" and
// ["float","Scalar","float"], plus an output as large as the largest input. 0: unknown.
std::int64_t bytes_moved(std::string_view dims, std::string_view types) {
    std::int64_t sum = 0, largest = 0;
    std::size_t type_at = 0;
    for (std::size_t at = 1; at < dims.size();) {
        std::size_t open = dims.find('[', at);
        if (open == dims.npos) break;
        std::size_t close = dims.find(']', open);
        if (close == dims.npos) break;
        std::size_t quote = types.find('"', type_at);
        std::size_t quote_end = quote == types.npos ? types.npos : types.find('"', quote + 1);
        if (quote_end == types.npos) break;
        std::int64_t count = 1, value = 0;
        bool has_value = false;
        for (std::size_t i = open + 1; i <= close; ++i) {
            char c = dims[i];
            if (c >= '0' && c <= '9') {
                value = value * 10 + (c - '0');
                has_value = true;
            } else if ((c == ',' || c == ']') && has_value) {
                count = value > 0 && count < (std::int64_t{1} << 40) / value ? count * value : 0;
                value = 0;
            } else if (c == '[') {  // a list of tensors is not supported
                return 0;
            }
        }
        std::int64_t size =
            has_value ? count * bytes_of(types.substr(quote, quote_end - quote)) : 0;
        sum += size;
        largest = std::max(largest, size);
        at = close + 1;
        type_at = quote_end + 1;
    }
    return sum + largest;
}

// Returns the memory throughput in GB/s over the kernels with known shapes, or 0 if unknown.
double achieved_gbs(const Context& context, const Runs& runs) {
    if (!context.trace.has_shapes) return 0;
    std::unordered_map<std::uint32_t, std::int64_t> moved;  // by external id
    for (const Event& event : context.trace.events) {
        const OpDetail* detail = context.trace.op_detail(event);
        if (!detail || !detail->dims || !detail->types || !event.external) continue;
        moved[event.external] = bytes_moved(context.trace.names.text(detail->dims),
                                            context.trace.names.text(detail->types));
    }
    double bytes = 0, time = 0;
    for (std::size_t i = 0; i < context.line.gpu.size(); ++i) {
        std::uint32_t index = context.line.gpu[i];
        const Event* launch = context.launch(i);
        if (!launch || !std::ranges::binary_search(runs.works, index)) continue;
        std::uint32_t external = context.event(index).external;
        auto found = moved.find(external ? external : launch->external);
        if (found == moved.end() || found->second == 0) continue;
        bytes += static_cast<double>(found->second);
        time += static_cast<double>(context.event(index).duration_ns);
    }
    bool is_much = time * 4 >= static_cast<double>(runs.ns);
    return is_much && time > 0 ? bytes / time : 0;
}

// A fused run is launched once. The launches of the kernels that vanish (scale 0 in `fused`) vanish
// too, however long the fused kernel takes.
ReplayChange scaled_by(const Context& context,
                       const std::unordered_map<std::uint32_t, float>& scales,
                       const std::unordered_map<std::uint32_t, float>& fused) {
    ReplayChange change;
    std::vector<std::uint32_t> calls;
    for (std::size_t i = 0; i < context.line.gpu.size(); ++i) {
        auto found = fused.find(context.line.gpu[i]);
        if (found != fused.end() && found->second == 0 && context.line.launch_of[i] >= 0)
            calls.push_back(static_cast<std::uint32_t>(context.line.launch_of[i]));
    }
    std::ranges::sort(calls);
    change.call_scale = [calls](std::uint32_t event) {
        return std::ranges::binary_search(calls, event) ? 0.1 : 1.0;
    };
    change.gpu_scale = [scales](std::uint32_t event) {
        auto found = scales.find(event);
        return found == scales.end() ? 1.0 : static_cast<double>(found->second);
    };
    return change;
}

// Returns the kernel time before over the kernel time after. It limits the gain, because idle time
// shrinks no faster than the work.
double on_kernel_time(const Context& context, const ReplayChange& change) {
    auto left = static_cast<double>(context.kernel_ns);
    for (std::uint32_t index : context.line.gpu)
        left -= static_cast<double>(context.event(index).duration_ns) *
                (1.0 - std::min(1.0, change.gpu_scale(index)));
    auto whole = static_cast<double>(context.kernel_ns);
    return whole / std::max(left, 0.01 * whole);
}

// True if the GPU is busy without counting communication, which is no work that could be fused.
bool is_busy_computing(const Context& context) {
    const Split& split = context.line.split;
    std::int64_t own = context.line.length_ns() - split.communication_ns;
    return 100.0 * static_cast<double>(split.busy_ns() - split.communication_ns) >=
           kBusyFrom * static_cast<double>(own);
}

}  // namespace

void find_fusible(Context& context) {
    if (!is_busy_computing(context) || context.kernel_ns <= 0) return;
    Runs runs = find_runs(context);
    double share =
        100.0 * static_cast<double>(runs.all_ns) / static_cast<double>(context.kernel_ns);
    if (share < kShareFrom) return;
    Finding finding{
        .id = "F33", .share_percent = context.percent(runs.all_ns), .count = runs.kernels};
    finding.ms_per_step = context.ms_per_step(runs.all_ns);
    finding.confidence = Confidence::medium;
    finding.evidence = fmt::format(
        "{:.0f} % of kernel time goes into {} element-wise kernels in {} runs: each "
        "reads from memory what the one before wrote",
        share, runs.kernels, runs.count);
    double speed = achieved_gbs(context, runs);
    if (speed > 0 && context.gpu && context.gpu->bandwidth_gbs > speed)
        finding.evidence +=
            fmt::format("; {:.0f} GB/s of the GPU's {:.0f}", speed, context.gpu->bandwidth_gbs);
    // Element-wise kernels reach at least a third of the memory bandwidth, unless the driver uses
    // host memory.
    if (speed > 0 && context.gpu && 10 * speed < context.gpu->bandwidth_gbs)
        finding.surer =
            "so slow, the GPU's memory may be full and the driver may use the host's instead: look "
            "at nvidia-smi, try a smaller batch";
    finding.assumes =
        "a fused run takes as long as its longest kernel; in two measured jobs 291 ms became 147 "
        "and "
        "303 became 194";
    if (context.is_compiled)
        finding.fix = "torch.compile the part that is not compiled yet, and remove graph breaks";
    finding.examples.push_back(context.example(runs.longest));
    ReplayChange change = scaled_by(context, runs.short_scale, runs.short_scale);
    if (!context.add(finding, change, 0)) return;
    Gain& gain = context.findings.back().gain;
    gain.likely = gain.high = std::min(gain.likely, on_kernel_time(context, change));
    ReplayChange safe = scaled_by(context, runs.safe_scale, runs.short_scale);
    gain.low = std::min({gain.likely, context.replay.gain(safe), on_kernel_time(context, safe)});
}

}  // namespace saturate
