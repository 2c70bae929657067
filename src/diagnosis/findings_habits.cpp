// SPDX-License-Identifier: Apache-2.0
// F26: habits in the user's code that cost a little time in each step.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "diagnosis/context.h"

namespace saturate {
namespace {

// True for operators that create and fill a tensor.
bool fills(std::string_view op) {
    for (std::string_view name :
         {"aten::zeros", "aten::ones", "aten::randn", "aten::rand", "aten::full", "aten::arange"}) {
        if (op == name) return true;
    }
    return false;
}

std::int64_t idle_within(const Timeline& line, std::int64_t from, std::int64_t to) {
    std::int64_t idle = 0;
    auto gap = std::ranges::upper_bound(line.gaps, from, {}, &Gap::end_ns);
    for (; gap != line.gaps.end() && gap->start_ns < to; ++gap)
        idle += std::min(gap->end_ns, to) - std::max(gap->start_ns, from);
    return idle;
}

// Finds tensors that are filled on the host and then copied to the device. The call of the copy is
// inside the aten::to that follows the filling operator.
void filled_then_moved(Context& context) {
    const Trace& trace = context.trace;
    std::vector<std::uint32_t> copies;
    for (std::size_t i = 0; i < context.line.gpu.size(); ++i) {
        const Event& copy = context.event(context.line.gpu[i]);
        if (copy.category == Category::memcpy && context.line.launch_of[i] >= 0 &&
            trace.name(copy).find("HtoD") != std::string_view::npos)
            copies.push_back(static_cast<std::uint32_t>(context.line.launch_of[i]));
    }
    std::ranges::sort(copies);
    std::vector<std::int64_t> filled(trace.lanes.size(), -1);  // end of the last filling operator
    std::vector<std::uint32_t> filler(trace.lanes.size(), 0);  // its name
    std::map<std::uint32_t, std::int64_t> by_filler;           // name, time
    std::vector<std::int64_t> filling(trace.lanes.size(), 0);  // GPU idle meanwhile
    std::vector<std::int64_t> moving_until(trace.lanes.size(), -1);
    std::vector<std::uint32_t> moves;
    std::int64_t time = 0;
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
        const Event& event = trace.events[i];
        if (event.start_ns < context.line.start_ns) continue;
        if (event.category == Category::op) {
            if (fills(trace.name(event))) {
                filled[event.lane] = event.end_ns();
                filler[event.lane] = event.name;
                filling[event.lane] = idle_within(context.line, event.start_ns, event.end_ns());
            }
            bool follows = filled[event.lane] >= 0 && event.start_ns >= filled[event.lane] &&
                           event.start_ns - filled[event.lane] < 200'000;
            if (trace.name(event) == "aten::to" && follows)
                moving_until[event.lane] = event.end_ns();
        } else if (event.start_ns < moving_until[event.lane] &&
                   std::ranges::binary_search(copies, static_cast<std::uint32_t>(i))) {
            moves.push_back(static_cast<std::uint32_t>(i));
            std::int64_t both = event.duration_ns + filling[event.lane];
            time += both;
            by_filler[filler[event.lane]] += both;
            moving_until[event.lane] = filled[event.lane] = -1;
        }
    }
    auto count = static_cast<std::int64_t>(moves.size());
    if (context.per_step(count) < 1 || context.percent(time) < 1) return;
    // Few long operators on the CPU: do not also report the same time as slow launching.
    std::erase_if(context.findings, [&](const Finding& other) {
        bool is_unsure = other.optional || other.confidence == Confidence::low;
        return other.id == "F10" && is_unsure && other.share_percent <= 1.2 * context.percent(time);
    });
    Finding finding{.id = "F26",
                    .share_percent = context.percent(time),
                    .ms_per_step = context.ms_per_step(time),
                    .count = count,
                    .confidence = Confidence::low};
    auto most = std::ranges::max_element(by_filler, {}, [](const auto& one) { return one.second; });
    std::string_view op = trace.names.text(most->first);
    finding.fix = fmt::format("create the tensor where it is used: torch.{}(..., device=device)",
                              op.substr(op.rfind(':') + 1));
    finding.evidence = fmt::format("{} tensors are filled on the CPU and then moved ({})", count,
                                   context.rate_text(count));
    finding.examples.push_back(context.example(moves.front()));
    double left = 1.0 - finding.share_percent / 100;
    finding.gain = {1.0, 1.0 + 0.5 * (1 / left - 1), 1 / left};
    finding.assumes = "half of it is saved (estimate)";
    context.findings.push_back(finding);
}

// True if the third input of a convolution, its bias, has a shape, as in
// "[[8,3,32,32],[16,3,3,3],[16],...]".
bool has_bias(std::string_view dims) {
    std::size_t third = 0;
    for (int i = 0; i < 3 && third != std::string_view::npos; ++i)
        third = dims.find('[', third + 1);
    return third != std::string_view::npos && third + 1 < dims.size() && dims[third + 1] != ']';
}

// Finds convolutions with a bias that the following batch norm cancels.
void bias_before_norm(Context& context) {
    const Trace& trace = context.trace;
    std::vector<std::int64_t> ended(trace.lanes.size(), -1);  // end of a convolution with a bias
    std::vector<std::uint32_t> found;
    std::vector<std::uint32_t> last(trace.lanes.size(), 0);
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
        const Event& event = trace.events[i];
        if (event.category != Category::op) continue;
        std::string_view name = trace.name(event);
        const OpDetail* detail = trace.op_detail(event);
        std::int64_t& end = ended[event.lane];
        if (name == "aten::conv2d") {
            bool biased = detail && detail->dims && has_bias(trace.names.text(detail->dims));
            end = biased ? event.end_ns() : -1;
            last[event.lane] = static_cast<std::uint32_t>(i);
        } else if (end >= 0 && event.start_ns >= end && !name.ends_with("add_")) {
            if (name == "aten::batch_norm") found.push_back(last[event.lane]);
            end = -1;
        }
    }
    if (found.empty()) return;
    Finding finding{.id = "F26",
                    .count = static_cast<std::int64_t>(found.size()),
                    .confidence = Confidence::medium};
    finding.evidence = fmt::format(
        "{} convolutions add a bias that the batch norm behind them removes", found.size());
    finding.fix = "Conv2d(..., bias=False) before BatchNorm2d";
    for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), 3); ++i)
        finding.examples.push_back(context.example(found[i]));
    // Each saves one pass over the output: a small gain at no cost.
    finding.gain = {1.0, 1.0, 1.01};
    context.findings.push_back(finding);
}

}  // namespace

void find_habits(Context& context) {
    filled_then_moved(context);
    bias_before_norm(context);
}

}  // namespace saturate
