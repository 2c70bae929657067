// SPDX-License-Identifier: Apache-2.0
#include "process/watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "base/clock.h"
#include "base/file.h"
#include "base/version.h"
#include "cuda/nvml.h"
#include "telemetry/gpu_tally.h"
#include "telemetry/run_device.h"
#include "telemetry/run_start.h"
#include "telemetry/sysfs_device.h"

namespace saturate {

Devices open_devices(bool wake, NvmlRecorder* recorder,
                     const std::optional<std::string>& job_folder) {
    DeviceOpening nvml = open_nvml({.wake = wake, .recorder = recorder});
    if (nvml.reader) return {std::move(nvml.reader), "", "nvml", {}, 0};
    if (job_folder) {
        return {open_run_device(*job_folder),
                "",
                "run " + *job_folder,
                {fmt::format("NVML: {}; the busy share is the job's own count in {}",
                             nvml.absent_because, *job_folder)},
                0};
    }
    DeviceOpening kernel = open_sysfs();
    if (kernel.reader) {
        return {std::move(kernel.reader),
                "",
                "kernel",
                {fmt::format("NVML: {}; taken from the kernel: names, and what its driver shows",
                             nvml.absent_because)},
                0};
    }
    return {nullptr, nvml.absent_because, "none", {}, 0};
}

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

std::filesystem::path fresh_run_folder() {
    std::filesystem::path parent = "saturate-runs";
    bool is_new = !std::filesystem::exists(parent);
    std::time_t now = wall_ns() / 1'000'000'000;
    std::tm local{};
    ::localtime_r(&now, &local);
    char stamp[32];
    std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
    std::filesystem::path folder = parent / fmt::format("{}-{}", stamp, ::getpid());
    std::filesystem::create_directories(folder);
    if (is_new) write_file_whole(parent / ".gitignore", "*\n");
    return folder;
}

}  // namespace saturate
