// SPDX-License-Identifier: Apache-2.0
// Which GPUs this machine has and where their numbers come from: one table of vendors for every
// verb. A further vendor is a reader (base/device.h) and a row in gpus.cpp.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/device.h"

namespace saturate {

class NvmlRecorder;

struct GpuAccess {
    bool wake = false;                 // also a GPU that sleeps
    NvmlRecorder* recorder = nullptr;  // writes down what NVML answers
};

struct GpuVendor {
    std::string_view source;  // "nvml", as records and JSON call it
    std::string_view tells;   // what is known through it; empty: all that there is
    // Never throws: without a driver it says why there is none.
    DeviceOpening (*open)(const GpuAccess& access);
    GpuSurvey (*survey)();
};

// In the order in which they are asked.
[[nodiscard]] std::span<const GpuVendor> gpu_vendors();

struct Devices {
    std::unique_ptr<DeviceReader> reader;  // null: no GPU, only the host can be watched
    std::string absent_because;
    std::string source;  // of a vendor; "run FOLDER", "recording FILE", "none"
    std::vector<std::string> notes;
    double recorded_seconds = 0;
};

// The first vendor that has a GPU here. A job that counts its own busy time (its record's folder)
// comes before whatever is not NVML.
[[nodiscard]] Devices open_gpus(const GpuAccess& access,
                                const std::optional<std::string>& job_folder = std::nullopt,
                                std::span<const GpuVendor> vendors = gpu_vendors());

// The index of the GPU at this address; CUDA and NVML write it with four and eight digits of the
// domain. Absent: not there.
[[nodiscard]] std::optional<int> gpu_at(const GpuDriver& driver, std::string_view pci_bus_id);

// What the GPU table calls the card at this address, `name` to CUDA. Some names are sold with
// several sizes of memory, which the driver tells; without it the name decides. Empty: not there.
[[nodiscard]] std::string card_at(const GpuSurvey& survey, std::string_view pci_bus_id,
                                  std::string_view name);

// The same as facts. `absent_because` says why there is no NVML, also where another vendor has a
// GPU.
[[nodiscard]] GpuSurvey survey_gpus(std::span<const GpuVendor> vendors = gpu_vendors());

}  // namespace saturate
