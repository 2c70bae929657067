// SPDX-License-Identifier: Apache-2.0
// What the NVIDIA driver tells about its GPUs. libnvidia-ml.so.1 is loaded at run time and each
// symbol on its own: an old driver loses single facts, a missing one says why.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/device.h"

namespace saturate {

// Writes down what the driver answers (docs/nvml-recording.md). Used by the one thread that reads.
class NvmlRecorder {
  public:
    // Replaces the file once a driver answers; MachineError then when it cannot be written.
    explicit NvmlRecorder(const std::filesystem::path& path);
    ~NvmlRecorder();
    void flush();  // once per tick
    // Ends the recording; why part of it could not be written, or empty.
    std::string finish();

    struct Impl;
    Impl& impl() { return *impl_; }

  private:
    std::unique_ptr<Impl> impl_;
};

struct NvmlSettings {
    std::filesystem::path sys = "/sys";
    bool wake = false;                 // also opens when every GPU sleeps (a laptop's)
    NvmlRecorder* recorder = nullptr;  // must live longer than the reader
};

// Never throws: without a driver the survey says why there is none.
[[nodiscard]] GpuSurvey survey_nvml(const NvmlSettings& settings = {});

// The same for sampling: the driver stays open as long as the reader lives. Never throws.
[[nodiscard]] DeviceOpening open_nvml(const NvmlSettings& settings = {});

struct NvmlRecording {
    std::unique_ptr<DeviceReader> reader;
    double seconds = 0;              // its length
    std::vector<std::string> notes;  // a cut, time going backwards
};
// Reads a recording; `now` is the steady time that its start is laid on. Throws UserError.
[[nodiscard]] NvmlRecording open_nvml_recording(const std::filesystem::path& path,
                                                std::function<std::int64_t()> now);

}  // namespace saturate
