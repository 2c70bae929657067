// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/trace_build.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "base/text.h"

namespace saturate {
namespace {

std::string_view unquoted(std::string_view raw) {
    if (raw.size() >= 2 && raw.front() == '"' && raw.back() == '"')
        return raw.substr(1, raw.size() - 2);
    return raw;
}

std::uint32_t id_of(std::string_view raw) {
    std::optional<std::int64_t> value = parse_integer(unquoted(raw));
    if (!value || *value <= 0) return 0;
    // Some ids are wider (flows of other kinds); the lower half still distinguishes launches.
    return static_cast<std::uint32_t>(*value);
}

}  // namespace

Category category_of(std::string_view written, std::string_view name) {
    if (written == "gpu_user_annotation") return Category::gpu_annotation;
    if (name.starts_with("ProfilerStep#") || name.starts_with("enumerate(DataLoader)#") ||
        name.starts_with("Optimizer."))
        return Category::annotation;
    if (written == "cpu_op" || written == "Operator") return Category::op;
    if (written == "cuda_runtime" || written == "cuda_driver" || written == "Runtime" ||
        written.starts_with("hip") || written == "xpu_runtime" || written == "xpu_driver")
        return Category::runtime;
    if (written == "kernel" || written == "Kernel") return Category::kernel;
    if (written == "python_function") return Category::python;
    if (written == "gpu_memcpy" || written == "Memcpy") return Category::memcpy;
    if (written == "gpu_memset" || written == "Memset") return Category::memset;
    if (written == "user_annotation") return Category::annotation;
    if (written == "cuda_sync") return Category::sync;
    if (written == "overhead") return Category::overhead;
    return Category::other;
}

std::optional<std::int64_t> time_ns(std::string_view written) {
    written = trim(unquoted(trim(written)));
    bool negative = written.starts_with('-');
    if (negative) written.remove_prefix(1);
    std::size_t at = 0;
    std::int64_t whole = 0;
    // Half the range, so that sums and differences of two times do not overflow.
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 2000 - 1;
    while (at < written.size() && written[at] >= '0' && written[at] <= '9') {
        whole = whole * 10 + (written[at++] - '0');
        if (whole > kMost) return std::nullopt;
    }
    if (at == 0) return std::nullopt;
    std::int64_t fraction = 0;
    if (at < written.size() && written[at] == '.') {
        ++at;
        std::int64_t scale = 100;
        while (at < written.size() && written[at] >= '0' && written[at] <= '9') {
            fraction += (written[at++] - '0') * scale;
            scale /= 10;
        }
    }
    if (at < written.size()) {  // 1.5e3 and the like
        std::optional<double> number = parse_number(written);
        if (!number || !(*number >= 0) || *number > static_cast<double>(kMost)) return std::nullopt;
        whole = static_cast<std::int64_t>(*number);
        fraction = static_cast<std::int64_t>((*number - static_cast<double>(whole)) * 1000);
    }
    std::int64_t value = whole * 1000 + fraction;
    return negative ? -value : value;
}

bool is_user_frame(std::string_view frame) {
    if (frame.find(".py(") == std::string_view::npos) return false;
    for (std::string_view foreign :
         {"site-packages/", "dist-packages/", "lib/python", "torch/", "<frozen", "threading.py(",
          "contextlib.py(", "queue.py(", "multiprocessing/", "concurrent/", "asyncio/"}) {
        if (frame.find(foreign) != std::string_view::npos) return false;
    }
    return true;
}

std::string_view user_frame(std::string_view call_stack) {
    for (std::string_view frame : split(call_stack, ';')) {
        if (is_user_frame(frame)) return trim(frame);
    }
    return {};
}

void TraceBuilder::add(const RawEvent& raw) {
    switch (raw.phase) {
        case 'X':
            add_complete(raw);
            break;
        case 's':
            add_flow(raw);
            break;
        case 'M':
            add_metadata(raw);
            break;
        case 'i':
            if (!raw.reserved.empty() && !raw.device.empty() && raw.device != "-1") {
                trace_.reserved_bytes_peak = std::max<std::uint64_t>(
                    trace_.reserved_bytes_peak, static_cast<std::uint64_t>(std::max<std::int64_t>(
                                                    0, parse_integer(raw.reserved).value_or(0))));
            }
            break;
        case 'B': {
            std::size_t count = trace_.events.size();
            add_complete(raw);
            if (trace_.events.size() > count) {
                const Event& event = trace_.events.back();
                edges_.push_back({static_cast<std::int64_t>(count), event.start_ns, event.lane});
            }
            break;
        }
        case 'E':
            add_end(raw);
            break;
        case 0:
            ++trace_.losses.dropped_events;
            break;
        default:
            break;
    }
}

void TraceBuilder::add_complete(const RawEvent& raw) {
    std::optional<std::int64_t> start = time_ns(raw.time);
    if (raw.name.empty() || raw.time.empty()) {
        ++trace_.losses.dropped_events;
        return;
    }
    if (!start) {
        ++trace_.losses.implausible_times;
        return;
    }
    Event event;
    event.start_ns = *start;
    if (!raw.duration.empty()) {
        std::optional<std::int64_t> duration = time_ns(raw.duration);
        if (!duration) {
            ++trace_.losses.implausible_times;
            return;
        }
        if (*duration < 0) ++trace_.losses.negative_durations;
        event.duration_ns = std::max<std::int64_t>(*duration, 0);
    }
    event.category = category_of(raw.category, raw.name);
    constexpr std::string_view kRuntime = "_runtime";  // "mtia_runtime", "privateuse1_runtime"
    if (event.category == Category::other && raw.category.ends_with(kRuntime))
        trace_.other_device = raw.category.substr(0, raw.category.size() - kRuntime.size());
    event.name = trace_.names.add(raw.name);
    event.correlation = id_of(raw.correlation);
    event.external = id_of(raw.external);
    event.lane = lane_of(event.category, raw);
    if (is_gpu(event.category)) {
        std::int64_t bytes = parse_integer(unquoted(raw.bytes)).value_or(0);
        if (bytes > 0 || raw.blocks > 0) {
            auto small = [](std::uint64_t value) {
                return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, 0xffffffff));
            };
            trace_.gpu_details.push_back(
                {static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)), small(raw.blocks),
                 small(raw.threads)});
            event.detail = static_cast<std::uint32_t>(trace_.gpu_details.size());
        }
    } else if (event.category == Category::op && (!raw.dims.empty() || !raw.call_stack.empty())) {
        trace_.op_details.push_back({trace_.names.add(raw.dims), trace_.names.add(raw.types),
                                     trace_.names.add(user_frame(raw.call_stack))});
        event.detail = static_cast<std::uint32_t>(trace_.op_details.size());
    }
    if (event.category == Category::python || !raw.call_stack.empty()) trace_.has_stacks = true;
    trace_.events.push_back(event);
}

// Ends the range that the thread or stream began last; an end event needs no name.
void TraceBuilder::add_end(const RawEvent& raw) {
    std::optional<std::int64_t> time = time_ns(raw.time);
    if (!time) {
        ++trace_.losses.skipped_ranges;
        return;
    }
    Category category = category_of(raw.category, raw.name);
    edges_.push_back({-1, *time, lane_of(category, raw)});
}

void TraceBuilder::close_ranges() {
    std::ranges::stable_sort(edges_, {}, &RangeEdge::time_ns);
    std::vector<std::vector<std::int64_t>> open(trace_.lanes.size());
    for (const RangeEdge& edge : edges_) {
        std::vector<std::int64_t>& stack = open[edge.lane];
        if (edge.event >= 0) {
            stack.push_back(edge.event);
        } else if (stack.empty()) {
            ++trace_.losses.skipped_ranges;
        } else {
            Event& event = trace_.events[static_cast<std::size_t>(stack.back())];
            event.duration_ns = edge.time_ns - event.start_ns;
            stack.pop_back();
        }
    }
    std::vector<std::int64_t> left;
    for (const std::vector<std::int64_t>& stack : open)
        left.insert(left.end(), stack.begin(), stack.end());
    std::ranges::sort(left, std::greater<>());
    for (std::int64_t event : left) {
        trace_.events.erase(trace_.events.begin() + event);
        ++trace_.losses.skipped_ranges;
    }
    edges_.clear();
}

void TraceBuilder::add_flow(const RawEvent& raw) {
    if (raw.category != "ac2g" && raw.category != "async") return;
    std::optional<std::int64_t> start = time_ns(raw.time);
    std::uint32_t id = id_of(raw.id);
    if (!start || id == 0) return;
    trace_.flows.push_back({id, host_lane(raw.process, raw.thread), *start});
}

void TraceBuilder::add_metadata(const RawEvent& raw) {
    if (raw.name == "process_name" &&
        (raw.label.starts_with("/host:") || raw.label.starts_with("/device:")))
        trace_.kind = TraceKind::tensorflow;
    if (raw.name != "thread_name") return;
    key_.assign(unquoted(raw.process)).append("/").append(unquoted(raw.thread));
    thread_names_[key_] = std::string(raw.label);
}

std::uint16_t TraceBuilder::host_lane(std::string_view process, std::string_view thread) {
    key_.assign(unquoted(process)).append("/").append(unquoted(thread));
    if (key_ == last_key_) return last_lane_;
    auto [place, is_new] =
        lanes_.try_emplace(key_, static_cast<std::uint16_t>(trace_.lanes.size()));
    if (is_new) {
        if (trace_.lanes.size() >= 65'000) {  // no program has so many threads; share one lane
            place->second = 0;
        } else {
            Lane lane;
            lane.process = unquoted(process);
            lane.thread = unquoted(thread);
            trace_.lanes.push_back(std::move(lane));
        }
    }
    last_key_ = key_;
    last_lane_ = place->second;
    return last_lane_;
}

std::uint16_t TraceBuilder::lane_of(Category category, const RawEvent& raw) {
    if (!is_gpu(category)) return host_lane(raw.process, raw.thread);
    // If the arguments name neither device nor stream (ROCm's older profiler), process and thread
    // hold them.
    constexpr std::int64_t kMostDevices = 64;
    bool is_named = !raw.stream.empty();
    auto device = parse_integer(unquoted(is_named ? raw.device : raw.process)).value_or(0);
    auto stream = parse_integer(unquoted(is_named ? raw.stream : raw.thread)).value_or(0);
    if (!is_named && (device < 0 || device >= kMostDevices)) device = 0;
    return stream_lane(static_cast<int>(device), stream);
}

std::uint16_t TraceBuilder::stream_lane(int device, std::int64_t stream) {
    key_.assign("gpu ").append(std::to_string(device)).append("/").append(std::to_string(stream));
    if (key_ == last_key_) return last_lane_;
    auto [place, is_new] =
        lanes_.try_emplace(key_, static_cast<std::uint16_t>(trace_.lanes.size()));
    if (is_new) {
        if (trace_.lanes.size() >= 65'000) {
            place->second = 0;
        } else {
            Lane lane;
            lane.gpu = true;
            lane.device = device;
            lane.stream = stream;
            trace_.lanes.push_back(std::move(lane));
        }
    }
    last_key_ = key_;
    last_lane_ = place->second;
    return last_lane_;
}

TraceBuilder::Mark TraceBuilder::mark() const {
    return {trace_.events.size(),
            trace_.gpu_details.size(),
            trace_.op_details.size(),
            trace_.flows.size(),
            edges_.size(),
            trace_.losses};
}

void TraceBuilder::rewind(const Mark& mark) {
    trace_.events.resize(mark.events);
    trace_.gpu_details.resize(mark.gpu_details);
    trace_.op_details.resize(mark.op_details);
    trace_.flows.resize(mark.flows);
    edges_.resize(mark.edges);
    trace_.losses = mark.losses;
}

void TraceBuilder::finish() {
    close_ranges();
    for (Lane& lane : trace_.lanes) {
        auto found = thread_names_.find(lane.process + "/" + lane.thread);
        if (found != thread_names_.end()) lane.name = found->second;
    }
    std::unordered_set<std::uint32_t> launched;
    for (const Event& event : trace_.events) {
        if (event.category == Category::runtime && event.correlation)
            launched.insert(event.correlation);
    }
    std::erase_if(trace_.flows,
                  [&](const Flow& flow) { return launched.count(flow.correlation) > 0; });
    trace_.flows.shrink_to_fit();
    trace_.has_shapes = std::ranges::any_of(
        trace_.op_details, [](const OpDetail& detail) { return detail.dims != 0; });
}

}  // namespace saturate
