// SPDX-License-Identifier: Apache-2.0
// Reads what the NVIDIA driver reports about its GPUs. Loads libnvidia-ml.so.1 at run time and
// looks up each symbol separately: an old driver lacks single facts, and a missing
// driver gives a reason.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/device.h"

namespace saturate {

// Records the driver's answers (docs/nvml-recording.md). Used only by the thread that reads.
class NvmlRecorder {
  public:
    // Replaces the file once a driver answers; then throws MachineError if it cannot be written.
    explicit NvmlRecorder(const std::filesystem::path& path);
    ~NvmlRecorder();
    void flush();  // once per tick
    // Ends the recording. Returns why part of it could not be written, or an empty string.
    std::string finish();

    struct Impl;
    Impl& impl() { return *impl_; }

  private:
    std::unique_ptr<Impl> impl_;
};

struct NvmlSettings {
    std::filesystem::path sys = "/sys";
    bool wake = false;                 // open the driver even if every GPU is asleep (laptops)
    NvmlRecorder* recorder = nullptr;  // must outlive the reader
};

// Never throws: without a driver the survey has the reason.
[[nodiscard]] GpuSurvey survey_nvml(const NvmlSettings& settings = {});

// Opens the driver for sampling; it stays open as long as the reader lives. Never throws.
[[nodiscard]] DeviceOpening open_nvml(const NvmlSettings& settings = {});

struct NvmlRecording {
    std::unique_ptr<DeviceReader> reader;
    double seconds = 0;              // its length
    std::vector<std::string> notes;  // e.g. that it is cut off or time goes backwards
};
// Replays a recording. `now` returns the steady time; the recording starts at the first value that
// it returns. Throws UserError.
[[nodiscard]] NvmlRecording open_nvml_recording(const std::filesystem::path& path,
                                                std::function<std::int64_t()> now);

}  // namespace saturate
