// SPDX-License-Identifier: Apache-2.0
#include "tuning/busy_machine.h"

#include <fmt/format.h>

namespace saturate {

namespace {

constexpr double kMuch = 0.2;         // share of the cores
constexpr double kIdlePercent = 10;  // of one core; threads that look for news take a little

std::string other_work(double used, int cores, const std::string& queue) {
    return fmt::format(
        "other work uses {:.1f} of the {} cores of this machine{}: rates vary from run to run, and "
        "a "
        "difference takes longer to prove",
        used, cores, queue);
}

}  // namespace

std::string busy_machine(const HostSample& resting) {
    if (!resting.cpu_percent || !resting.cores || *resting.cores <= 0) return "";
    double used = *resting.cpu_percent / 100 * *resting.cores;
    // Subtracts the task that reads the counters: it runs too.
    int waiting = resting.running.value_or(1) - 1 - *resting.cores;
    if (used <= kMuch * *resting.cores && waiting <= 0) return "";
    std::string queue = waiting > 0 ? fmt::format(", and {} task{} for a core", waiting,
                                                  waiting == 1 ? " waits" : "s wait")
                                    : "";
    return other_work(used, *resting.cores, queue);
}

std::string busy_beside(std::span<const HostSample> watched) {
    double used = 0;
    int seen = 0, cores = 0;
    for (const HostSample& sample : watched) {
        if (!sample.cpu_percent || !sample.cores || !sample.tree || !sample.tree->cpu_percent)
            continue;
        double own = *sample.tree->cpu_percent + sample.own_cpu_percent.value_or(0);
        used += (*sample.cpu_percent * *sample.cores - own) / 100;
        cores = *sample.cores;
        ++seen;
    }
    if (seen == 0 || used / seen <= kMuch * cores) return "";
    return other_work(used / seen, cores, "");
}

bool is_idle_from(std::int64_t time_ns, std::span<const HostSample> watched) {
    double used = 0;
    int seen = 0;
    for (const HostSample& sample : watched) {
        if (sample.time_ns <= time_ns || !sample.tree || !sample.tree->cpu_percent) continue;
        used += *sample.tree->cpu_percent;
        ++seen;
    }
    return seen > 0 && used / seen < kIdlePercent;
}

}  // namespace saturate
