// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/core_use.h"

#include <algorithm>
#include <vector>

#include "telemetry/statistics.h"

namespace saturate {

namespace {

constexpr std::size_t kEnough = 3;
constexpr double kUndisturbed = 0.95;  // the share of the time wanting a core in which we had one
constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

double CoreUse::usable(const Wish& wish) const {
    auto cores = static_cast<double>(wish.cores);
    if (n == 0) return cores;
    double got = own + queued > 0 ? own / (own + queued) : 1.0;
    double rivals = got < kUndisturbed ? std::max(others, machine / got - 1) : others;
    double fair = machine * wish.tasks / std::max(machine, wish.tasks + rivals);
    return std::clamp(std::max(machine - others, fair), 0.1, std::max(1.0, cores));
}

CoreUse core_use(const RunRecord& record) {
    if (record.steps.empty()) return {};
    std::int64_t first = record.steps.front().start_ns;
    std::int64_t last = record.steps.back().start_ns + record.steps.back().duration_ns;
    std::vector<double> own, queued, others;
    double machine = 0;
    for (const HostSample& host : record.hosts) {
        // A sample covers the second before it.
        if (host.time_ns < first + kSecond || host.time_ns > last) continue;
        if (!host.cpu_percent || !host.cores || !host.tree || !host.tree->cpu_percent) continue;
        machine = *host.cores;
        own.push_back(*host.tree->cpu_percent / 100.0);
        queued.push_back(host.tree->run_queue_percent.value_or(0) / 100.0);
        double watching = host.own_cpu_percent.value_or(0) / 100.0;
        others.push_back(
            std::max(0.0, *host.cpu_percent / 100.0 * machine - own.back() - watching));
    }
    if (own.size() < kEnough) return {};
    double ranks = std::max(1.0, record.python["world_size"].number().value_or(1));
    CoreUse out{.own = median(own) / ranks,
                .queued = median(queued) / ranks,
                .others = median(others),
                .machine = machine,
                .n = own.size()};
    out.others += out.own * (ranks - 1);
    return out;
}

}  // namespace saturate
