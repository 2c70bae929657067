// SPDX-License-Identifier: Apache-2.0
#include "telemetry/run_gather.h"

#include <algorithm>
#include <iterator>

namespace saturate {

namespace {
constexpr std::size_t kMostEvents = 1'000;  // of each kind
}

RunVisitor RunGather::visitor(RunVisitor also) {
    return {.step =
                [this, also](const StepRecord& step) {
                    account_.add(step);
                    steps_.add(step);
                    if (also.step) also.step(step);
                },
            .device =
                [this, also](const DeviceSample& sample) {
                    devices_.add(sample);
                    if (also.device) also.device(sample);
                },
            .host =
                [this, also](const HostSample& sample) {
                    hosts_.add(sample);
                    if (also.host) also.host(sample);
                },
            .event =
                [this, also](const EventRecord& event) {
                    account_.add(event);
                    events_.try_emplace(event.kind, kMostEvents).first->second.add(event);
                    if (also.event) also.event(event);
                }};
}

RunRecord RunGather::fill(RunRecord record) const {
    record.account = account_.account();
    record.steps = steps_.values();
    record.devices = devices_.values();
    record.hosts = hosts_.values();
    record.events.clear();
    for (const auto& [kind, some] : events_)
        std::ranges::copy(some.values(), std::back_inserter(record.events));
    std::ranges::stable_sort(record.events, {}, &EventRecord::time_ns);
    return record;
}

std::int64_t RunGather::events_left_out() const {
    std::int64_t out = 0;
    for (const auto& [kind, some] : events_)
        out += some.seen() - static_cast<std::int64_t>(some.values().size());
    return out;
}

RunRecord gather_run(const std::filesystem::path& folder) {
    RunGather gather;
    return gather.fill(visit_run(folder, gather.visitor()));
}

}  // namespace saturate
