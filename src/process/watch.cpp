// SPDX-License-Identifier: Apache-2.0
#include "process/watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/version.h"
#include "telemetry/gpu_tally.h"
#include "telemetry/run_start.h"

namespace saturate {

RunInfo run_info(const std::string& kind, const std::vector<std::string>& command,
                 const Devices& devices, std::int64_t start_ns) {
    RunInfo info = started_run(kind, command, saturate_version());
    info.started_wall_ns -= info.started_ns - start_ns;
    info.started_ns = start_ns;
    info.machine = recorded_machine(devices.reader ? devices.reader->driver().gpus
                                                   : std::vector<GpuIdentity>{});
    return info;
}

RunSummary run_summary(const Summary& summary, const std::string& ended,
                       std::optional<int> status) {
    RunSummary out{.duration_ns = static_cast<std::int64_t>(summary.seconds * 1e9),
                   .ended = ended,
                   .exit_status = status};
    BusyShare busy = busy_share(summary.gpus);
    out.busy_percent = busy.percent;
    out.busy_deviation = busy.deviation;
    double energy = 0;
    for (const GpuSummary& gpu : summary.gpus) {
        if (gpu.memory_peak_bytes) {
            out.memory_peak_bytes = std::max(out.memory_peak_bytes.value_or(0),
                                             static_cast<std::uint64_t>(*gpu.memory_peak_bytes));
        }
        if (gpu.energy_joules) out.energy_joules = energy += *gpu.energy_joules;
    }
    out.verdict = verdict_name(summary.level);
    out.extra = summary_object(summary);
    return out;
}

}  // namespace saturate
