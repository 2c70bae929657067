// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/waits.h"

#include <algorithm>

#include "diagnosis/context.h"
#include "diagnosis/host.h"

namespace saturate {
namespace {

enum class Copy : std::uint8_t { none, to_host, to_device };

// Returns the direction of each pageable copy, by the call that started it.
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
        if (causes.of(i) != Cause::sync || context.line.is_in_one_off(event)) continue;
        std::string_view name = trace.name(event);
        bool is_stream = name.ends_with("StreamSynchronize");
        if (context.inside[i] & kInsideRead) {
            waits.reads.calls.push_back(index);
            auto op = static_cast<std::uint32_t>(context.read_op[i]);
            if (waits.read_ops.empty() || waits.read_ops.back() != op) waits.read_ops.push_back(op);
        } else if (is_copy || (is_stream && (context.inside[i] & kInsideOp) &&
                               last_copy[event.lane] != Copy::none)) {
            // PyTorch synchronises the stream after a copy from or to pageable memory.
            bool down = last_copy[event.lane] == Copy::to_host;
            (down ? waits.to_host : waits.to_device).calls.push_back(index);
        } else if (name.find("Memcpy") == name.npos) {
            waits.explicit_ones.calls.push_back(index);
            if (name.ends_with("DeviceSynchronize")) last_device_sync = index;
        }
    }
    // The last one is the profiler's own call at the end of the trace.
    std::vector<std::uint32_t>& last = waits.explicit_ones.calls;
    if (!last.empty() && last.back() == last_device_sync) last.pop_back();
    for (WaitGroup* group : {&waits.reads, &waits.to_device, &waits.explicit_ones})
        group->idle_ns = idle_after(context.line, group->calls);
    waits.to_host.idle_ns = idle_after(context.line, waits.to_host.calls, Brings::data);
    return waits;
}

void settle_waits(Context& context) {
    std::vector<WaitingFinding>& list = context.waiting;
    ReplayChange all;
    std::int64_t exposed = 0;
    double alone = 0;  // sum of the gains of removing only one kind
    for (const WaitingFinding& one : list) {
        all = all.with(one.change);
        exposed += one.exposed_ns;
        alone += context.replay.gain(one.change) - 1.0;
    }
    double together = context.replay.gain(all);
    if (list.size() < 2 || alone >= 0.75 * (together - 1.0)) {
        for (WaitingFinding& one : list)
            context.add(std::move(one.finding), one.change, one.exposed_ns);
        return;
    }
    // The gain that is lost if only this kind stays.
    std::vector<double> last;
    for (std::size_t i = 0; i < list.size(); ++i) {
        ReplayChange others;
        for (std::size_t k = 0; k < list.size(); ++k) {
            if (k != i) others = others.with(list[k].change);
        }
        last.push_back(together / context.replay.gain(others));
    }
    auto head = static_cast<std::size_t>(std::ranges::max_element(last) - last.begin());
    std::string head_id = list[head].finding.id;
    std::string ids;
    for (const WaitingFinding& one : list) {
        if (one.finding.id != head_id) ids += (ids.empty() ? "" : ", ") + one.finding.id;
    }
    list[head].finding.evidence += "; the gain assumes removing " + ids +
                                   " as well: remove one wait, and the next takes its place";
    if (!context.add(list[head].finding, all, exposed)) return;
    for (std::size_t i = 0; i < list.size(); ++i) {
        Finding& part = list[i].finding;
        if (i == head || last[i] < 1.01) continue;
        part.share_percent = context.percent(list[i].exposed_ns);
        part.ms_per_step = context.ms_per_step(list[i].exposed_ns);
        part.gain = {1.0, last[i], last[i]};
        part.evidence += "; the gain is what this one costs once the others are fixed";
        context.add_part(part, head_id);
    }
}

}  // namespace saturate
