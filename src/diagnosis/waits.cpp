// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/waits.h"

#include <algorithm>

#include "diagnosis/context.h"
#include "diagnosis/host.h"

namespace saturate {
namespace {

enum class Copy : std::uint8_t { none, to_host, to_device };

// The direction of each pageable copy, by the call that started it.
std::vector<std::pair<std::uint32_t, Copy>> pageable_copies(const Context& context) {
    std::vector<std::pair<std::uint32_t, Copy>> out;
    for (std::size_t i = 0; i < context.line.gpu.size(); ++i) {
        const Event& copy = context.event(context.line.gpu[i]);
        if (copy.category != Category::memcpy || context.line.launch_of[i] < 0) continue;
        std::string_view name = context.trace.name(copy);
        Copy kind = name.find("Pageable") == name.npos ? Copy::none
                    : name.find("DtoH") != name.npos   ? Copy::to_host
                    : name.find("HtoD") != name.npos   ? Copy::to_device
                                                       : Copy::none;
        if (kind != Copy::none)
            out.emplace_back(static_cast<std::uint32_t>(context.line.launch_of[i]), kind);
    }
    std::ranges::sort(out);
    return out;
}

}  // namespace

double Waits::share_of_gain(const WaitGroup& group) const {
    std::int64_t sum = reads.idle_ns + to_host.idle_ns + to_device.idle_ns + explicit_ones.idle_ns;
    if (sum <= 0) return 1.0;
    return 1.0 +
           (gain_of_all - 1.0) * static_cast<double>(group.idle_ns) / static_cast<double>(sum);
}

Waits find_waits(const Context& context) {
    Waits waits;
    const Trace& trace = context.trace;
    HostCauses causes(trace);
    std::vector<std::pair<std::uint32_t, Copy>> copies = pageable_copies(context);
    std::vector<Copy> last_copy(trace.lanes.size(), Copy::none);
    std::vector<bool> is_ours(trace.lanes.size());
    for (std::uint16_t lane : context.line.host_lanes) is_ours[lane] = true;
    std::int64_t last_device_sync = -1;
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
        const Event& event = trace.events[i];
        if (event.category != Category::runtime || !is_ours[event.lane] ||
            event.start_ns < context.line.start_ns || event.start_ns >= context.line.end_ns)
            continue;
        auto index = static_cast<std::uint32_t>(i);
        auto found =
            std::ranges::lower_bound(copies, index, {}, &std::pair<std::uint32_t, Copy>::first);
        bool is_copy = found != copies.end() && found->first == index;
        if (is_copy) last_copy[event.lane] = found->second;
        if (causes.of(i) != Cause::sync) continue;
        std::string_view name = trace.name(event);
        bool is_stream = name.ends_with("StreamSynchronize");
        if (context.inside[i] & kInsideRead) {
            waits.reads.calls.push_back(index);
            auto op = static_cast<std::uint32_t>(context.read_op[i]);
            if (waits.read_ops.empty() || waits.read_ops.back() != op) waits.read_ops.push_back(op);
        } else if (is_copy || (is_stream && (context.inside[i] & kInsideOp) &&
                               last_copy[event.lane] != Copy::none)) {
            // PyTorch synchronises the stream behind a copy from or to pageable memory.
            bool down = last_copy[event.lane] == Copy::to_host;
            (down ? waits.to_host : waits.to_device).calls.push_back(index);
        } else if (!name.ends_with("Memcpy")) {
            waits.explicit_ones.calls.push_back(index);
            if (name.ends_with("DeviceSynchronize")) last_device_sync = index;
        }
    }
    // The profiler's own, at the very end.
    std::vector<std::uint32_t>& last = waits.explicit_ones.calls;
    if (!last.empty() && last.back() == last_device_sync) last.pop_back();
    std::vector<std::uint32_t> all;
    for (WaitGroup* group :
         {&waits.reads, &waits.to_host, &waits.to_device, &waits.explicit_ones}) {
        group->idle_ns = idle_after(context.line, group->calls);
        all.insert(all.end(), group->calls.begin(), group->calls.end());
    }
    std::ranges::sort(all);
    if (!all.empty()) waits.gain_of_all = context.replay.gain(unblocking(all));
    return waits;
}

}  // namespace saturate
