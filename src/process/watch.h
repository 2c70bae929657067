// SPDX-License-Identifier: Apache-2.0
// What monitor and run share: where the GPU's numbers come from, the head and the summary of the
// record they write.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/device.h"
#include "telemetry/record.h"
#include "telemetry/summary.h"

namespace saturate {

class NvmlRecorder;

// Where the GPU's numbers come from: a recording, NVML, or what the kernel shows.
struct Devices {
    std::unique_ptr<DeviceReader> reader;
    std::string absent_because;
    std::string source;
    std::vector<std::string> notes;
    double recorded_seconds = 0;
};

// NVML, else the job's own count in its record, else what the kernel shows. `wake`: also a GPU that
// sleeps.
[[nodiscard]] Devices open_devices(bool wake, NvmlRecorder* recorder,
                                   const std::optional<std::string>& job_folder = std::nullopt);
[[nodiscard]] RunInfo run_info(const std::string& kind, const std::vector<std::string>& command,
                               const Devices& devices, std::int64_t start_ns);
[[nodiscard]] RunSummary run_summary(const Summary& summary, const std::string& ended,
                                     std::optional<int> status);

// saturate-runs/<time>-<pid>: a folder of its own for every run, beside the others, that git does
// not see.
[[nodiscard]] std::filesystem::path fresh_run_folder();

}  // namespace saturate
