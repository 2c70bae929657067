// SPDX-License-Identifier: Apache-2.0
// F18-F22 and F25: the GPU is busy with work that could take less time.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "diagnosis/context.h"
#include "diagnosis/cure.h"

namespace saturate {
namespace {

struct Sum {
    std::int64_t ns = 0;
    std::int64_t count = 0;
    std::uint32_t longest = 0;
    std::int64_t most = -1;
    void add(std::uint32_t index, const Event& event) {
        ns += event.duration_ns;
        ++count;
        if (event.duration_ns > most) {
            most = event.duration_ns;
            longest = index;
        }
    }
};

using Sums = std::map<KernelClass, Sum>;

double share_of_kernels(const Context& context, std::int64_t ns) {
    return context.kernel_ns > 0
               ? 100.0 * static_cast<double>(ns) / static_cast<double>(context.kernel_ns)
               : 0.0;
}

ReplayChange scaling(const Context& context, double scale, std::vector<KernelClass> kinds) {
    ReplayChange change;
    change.gpu_scale = [&trace = context.trace, scale, kinds,
                        known = std::vector<std::int8_t>(context.trace.names.size(), -1)](
                           std::uint32_t index) mutable {
        const Event& event = trace.events[index];
        if (event.category != Category::kernel) return 1.0;
        std::int8_t& is_one = known[event.name];
        if (is_one < 0)
            is_one = std::ranges::find(kinds, classify_kernel(trace.name(event))) != kinds.end();
        return is_one ? scale : 1.0;
    };
    return change;
}

// From FP32 to half precision on tensor cores: kReached is the share of the ratio of the two peaks
// that is reached. Matrix kernels became 6.3, 10.8 and 12.5 times as fast on an A100, where the
// peaks differ by a factor of 16, and 2.4 and 5.5 times on an RTX PRO 6000, where it is 4.
constexpr double kReached = 0.6, kMostRatio = 12.0;
// If the peaks differ only by a factor of 2 (GeForce), half precision reaches its peak: 76 of 71
// TFLOPS were measured on an RTX 3090, 159 to 173 of 165 on an RTX 4090.
constexpr double kLeastRatio = 2.0;
constexpr double kAttentionRatio = 4.7;  // of FP32 attention on an A100

bool is_amd(const Context& context) {
    return context.device && context.device->name.find("AMD") != std::string::npos;
}

void full_precision(Context& context, Sums& sums) {
    if (!context.device || !context.device->capability || is_amd(context) ||
        *context.device->capability < Capability{7, 0})
        return;
    std::int64_t fp32 = sums[KernelClass::matrix_fp32].ns;
    std::int64_t tensor = sums[KernelClass::matrix_tensor].ns + sums[KernelClass::matrix_half].ns;
    std::vector<KernelClass> kinds = {KernelClass::matrix_fp32};
    // If nearly nothing runs on tensor cores, count products of unknown precision as FP32 too.
    if (tensor * 50 < fp32) {
        fp32 += sums[KernelClass::matrix].ns;
        kinds.push_back(KernelClass::matrix);
    }
    if (share_of_kernels(context, fp32) < 10 || share_of_kernels(context, tensor) >= 20) return;
    bool has_bf16 = *context.device->capability >= Capability{8, 0};
    double ratio = 2.0;
    if (context.gpu && context.gpu->fp32_tflops > 0) {
        double fast =
            has_bf16 ? context.gpu->bf16_tflops.value_or(0) : context.gpu->fp16_tflops.value_or(0);
        double peaks = fast / context.gpu->fp32_tflops;
        if (fast > 0)
            ratio = std::clamp(kReached * peaks, std::min(peaks, kLeastRatio), kMostRatio);
    }
    Finding finding{.id = "F18", .share_percent = context.percent(fp32), .count = 0};
    for (KernelClass kind : kinds) finding.count += sums[kind].count;
    finding.evidence = fmt::format(
        "{:.0f} ms of matrix products and convolutions in FP32, {:.0f} % of kernel time; {:.0f} % "
        "on tensor cores",
        static_cast<double>(fp32) / 1e6, share_of_kernels(context, fp32),
        share_of_kernels(context, tensor));
    finding.assumes = fmt::format(
        "matrix kernels become {:.1f} times as fast, as measured on other jobs for such a GPU",
        ratio);
    finding.settings = cures("F18", context.facts);
    if (!has_bf16) {
        finding.fix = context.is_training
                          ? "torch.autocast('cuda', torch.float16) with a GradScaler"
                          : "torch.autocast('cuda', torch.float16)";
        // FP16 needs loss scaling and a check of the loss curve, so this is optional.
        finding.optional = true;
        finding.confidence = Confidence::low;
    }
    finding.examples.push_back(context.example(sums[KernelClass::matrix_fp32].longest));
    ReplayChange change = scaling(context, 1.0 / ratio, kinds);
    std::int64_t attention = 0;
    std::vector<std::uint32_t> in_fp32;
    for (std::uint32_t index : context.line.gpu) {
        const Event& event = context.event(index);
        if (event.category != Category::kernel ||
            context.classes.of(event) != KernelClass::attention ||
            context.trace.name(event).find("f32") == std::string_view::npos)
            continue;
        attention += event.duration_ns;
        in_fp32.push_back(index);
    }
    if (attention > 0) change = change.with(scaling_works(in_fp32, 1.0 / kAttentionRatio));
    auto saved =
        static_cast<std::int64_t>(static_cast<double>(fp32) * (1.0 - 1.0 / ratio) +
                                  static_cast<double>(attention) * (1.0 - 1.0 / kAttentionRatio));
    if (!context.add(finding, change, saved) || !has_bf16) return;
    // The whole model in bf16 halves the bytes of everything else as well.
    ReplayChange whole = scaling_works(context.line.gpu, 0.5).with(change);
    Gain& gain = context.findings.back().gain;
    gain.high = std::max(gain.high, std::min(context.replay.gain(whole), context.most_gain(whole)));
    context.most.emplace_back(finding.id, whole);
}

void layout(Context& context, Sums& sums) {
    const Sum& sum = sums[KernelClass::layout];
    if (share_of_kernels(context, sum.ns) < 3) return;
    Finding finding{.id = "F19", .share_percent = context.percent(sum.ns), .count = sum.count};
    finding.evidence =
        fmt::format("{} kernels turn NCHW into NHWC and back: {:.1f} % of kernel time", sum.count,
                    share_of_kernels(context, sum.ns));
    Facts facts = context.facts;
    facts.has_images = true;  // only images need layout changes
    finding.settings = cures("F19", facts);
    finding.examples.push_back(context.example(sum.longest));
    // With a large share of the kernel time it is shown even if the GPU is mostly idle.
    context.add(finding, scaling(context, 0.02, {KernelClass::layout}), sum.ns,
                share_of_kernels(context, sum.ns) >= 10);
}

void attention(Context& context, Sums& sums) {
    const Sum& sum = sums[KernelClass::softmax];
    if (share_of_kernels(context, sum.ns) < 15 || sums[KernelClass::attention].ns > sum.ns) return;
    // Count softmax between two matrix products: scores before it, values after it.
    std::int64_t between = 0;
    for (std::size_t i = 1; i + 1 < context.line.gpu.size(); ++i) {
        if (context.classes.of(context.event(context.line.gpu[i])) != KernelClass::softmax)
            continue;
        auto has_product = [&](std::size_t from, std::size_t to) {
            for (std::size_t k = from; k < to && k < context.line.gpu.size(); ++k) {
                if (is_matrix(context.classes.of(context.event(context.line.gpu[k])))) return true;
            }
            return false;
        };
        if (has_product(i >= 8 ? i - 8 : 0, i) && has_product(i + 1, i + 9)) ++between;
    }
    if (between * 2 < sum.count) return;
    Finding finding{.id = "F20", .share_percent = context.percent(sum.ns), .count = sum.count};
    finding.confidence = Confidence::medium;
    finding.evidence =
        fmt::format("softmax is {:.0f} % of kernel time, {} of {} between two matrix products",
                    share_of_kernels(context, sum.ns), between, sum.count);
    finding.settings = cures("F20", context.facts);
    finding.examples.push_back(context.example(sum.longest));
    finding.assumes = "70 % of the softmax time is saved (estimate)";
    context.add(finding, scaling(context, 0.3, {KernelClass::softmax}), sum.ns);
}

// Returns the first dimension of a text like "[[64,1000],[1000,513]]" that is not a multiple of 8
// and large enough to matter.
std::optional<std::int64_t> misaligned(std::string_view dims) {
    std::int64_t value = 0;
    bool in_number = false;
    for (char c : dims) {
        if (c >= '0' && c <= '9') {
            value = std::min<std::int64_t>(value * 10 + (c - '0'), 1 << 30);
            in_number = true;
        } else if (in_number) {
            if (value % 8 != 0 && value > 32) return value;
            value = 0;
            in_number = false;
        }
    }
    return std::nullopt;
}

void alignment(Context& context) {
    if (!context.trace.has_shapes) return;
    std::map<std::uint32_t, std::pair<std::int64_t, std::size_t>>
        bad;  // external id: dimension, operator
    for (std::size_t i = 0; i < context.trace.events.size(); ++i) {
        const OpDetail* detail = context.trace.op_detail(context.event(i));
        if (!detail || !detail->dims || !context.trace.name(context.event(i)).ends_with("mm"))
            continue;
        std::string_view types = context.trace.names.text(detail->types);
        if (types.find("Half") == types.npos && types.find("BFloat16") == types.npos) continue;
        if (auto value = misaligned(context.trace.names.text(detail->dims)))
            bad.emplace(context.event(i).external, std::pair(*value, i));
    }
    if (bad.empty()) return;
    std::vector<std::uint32_t> kernels;
    std::int64_t time = 0;
    std::size_t example = bad.begin()->second.second;
    std::int64_t dimension = bad.begin()->second.first;
    for (std::size_t i = 0; i < context.line.gpu.size(); ++i) {
        const Event& kernel = context.event(context.line.gpu[i]);
        const Event* launch = context.launch(i);
        auto found = launch ? bad.find(launch->external) : bad.end();
        if (found == bad.end() || !is_matrix(context.classes.of(kernel))) continue;
        kernels.push_back(context.line.gpu[i]);
        time += kernel.duration_ns;
    }
    Finding finding{.id = "F21",
                    .share_percent = context.percent(time),
                    .count = static_cast<std::int64_t>(bad.size()),
                    .confidence = Confidence::low};
    finding.evidence = fmt::format(
        "{} half-precision matrix products have a dimension that is not a multiple of 8, such as "
        "{}",
        bad.size(), dimension);
    finding.examples.push_back(context.example(example));
    if (context.line.gpu.empty()) {  // a CPU trace shows the shapes, not the cost
        context.findings.push_back(finding);
        return;
    }
    finding.assumes = "aligned products take 70 % of the time (estimate)";
    context.add(finding, scaling_works(kernels, 0.7), time * 3 / 10);
}

void copies(Context& context, Sums& sums) {
    Sum sum = sums[KernelClass::copy];
    for (std::uint32_t index : context.line.gpu) {
        const Event& event = context.event(index);
        if (event.category == Category::memcpy &&
            context.trace.name(event).find("DtoD") != std::string_view::npos)
            sum.add(index, event);
    }
    // The casts of mixed precision are copies too: only a large share means unnecessary copies.
    if (share_of_kernels(context, sum.ns) < 5) return;
    Finding finding{.id = "F22",
                    .share_percent = context.percent(sum.ns),
                    .count = sum.count,
                    .confidence = Confidence::low};
    finding.optional = true;
    finding.evidence =
        fmt::format("{} element-wise and device-to-device copies: {:.0f} % of kernel time",
                    sum.count, share_of_kernels(context, sum.ns));
    finding.examples.push_back(context.example(sum.longest));
    finding.assumes = "half of them are not needed (estimate)";
    context.add(finding, scaling(context, 0.5, {KernelClass::copy}), sum.ns);
}

void fill(Context& context) {
    int sms = context.device ? context.device->sm_count : 0;
    if (sms <= 0 || is_amd(context)) return;
    std::int64_t low = 0, count = 0;
    double unused = 0;
    for (std::uint32_t index : context.line.gpu) {
        const Event& kernel = context.event(index);
        const GpuDetail* detail = context.trace.gpu_detail(kernel);
        if (kernel.category != Category::kernel || !detail || detail->blocks == 0 ||
            context.classes.of(kernel) == KernelClass::communication)
            continue;
        if (detail->blocks >= static_cast<std::uint32_t>(sms)) continue;
        low += kernel.duration_ns;
        unused += static_cast<double>(kernel.duration_ns) *
                  (1.0 - static_cast<double>(detail->blocks) / sms);
        ++count;
    }
    if (share_of_kernels(context, low) < 30) return;
    Finding finding{.id = "F25",
                    .share_percent = context.percent(low),
                    .ms_per_step = context.ms_per_step(low),
                    .count = count,
                    .confidence = Confidence::low};
    finding.optional = true;  // the gain is only a bound
    finding.evidence =
        fmt::format("{} kernels with fewer blocks than the {} SMs take {:.0f} % of kernel time",
                    count, sms, share_of_kernels(context, low));
    double left = 1.0 - context.percent(static_cast<std::int64_t>(unused)) / 100.0;
    finding.gain = {1.0, 1.0 + 0.3 * (1.0 / left - 1.0), 1.0 / left};
    finding.assumes = "30 % of the idle SMs can be filled (estimate)";
    context.findings.push_back(finding);
}

}  // namespace

void find_compute(Context& context) {
    Sums sums;
    for (std::uint32_t index : context.line.gpu) {
        const Event& event = context.event(index);
        if (event.category == Category::kernel) sums[context.classes.of(event)].add(index, event);
    }
    full_precision(context, sums);
    layout(context, sums);
    attention(context, sums);
    find_fusible(context);
    alignment(context);
    copies(context, sums);
    fill(context);
}

}  // namespace saturate
