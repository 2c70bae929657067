// SPDX-License-Identifier: Apache-2.0
// Finds the GPUs of this machine and the source of their counters: one table of vendors for all
// verbs. To add a vendor, write a reader (base/device.h) and a row in gpus.cpp.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/device.h"
#include "probe/gpu_table.h"

namespace saturate {

class NvmlRecorder;

struct GpuAccess {
    bool wake = false;                 // also a sleeping GPU
    NvmlRecorder* recorder = nullptr;  // records the answers of NVML
};

struct GpuVendor {
    std::string_view source;  // name in records and JSON, such as "nvml"
    std::string_view tells;   // what this source can tell; empty: everything
    // Never throws. Without a driver the answer says why there is no reader.
    DeviceOpening (*open)(const GpuAccess& access);
    GpuSurvey (*survey)();
};

// In the order in which they are tried.
[[nodiscard]] std::span<const GpuVendor> gpu_vendors();

struct Devices {
    std::unique_ptr<DeviceReader> reader;  // null: no GPU, only the host can be watched
    std::string absent_because;
    std::string source;  // a vendor's `source`, "run FOLDER", "recording FILE" or "none"
    std::vector<std::string> notes;
    double recorded_seconds = 0;
};

// Opens the first vendor that has a GPU here. A job that counts its own busy time (the folder of
// its record) takes precedence over every vendor but NVML.
[[nodiscard]] Devices open_gpus(const GpuAccess& access,
                                const std::optional<std::string>& job_folder = std::nullopt,
                                std::span<const GpuVendor> vendors = gpu_vendors());

// The index of the GPU at this PCI address, or nothing. CUDA and NVML write the domain with four
// and eight digits.
[[nodiscard]] std::optional<int> gpu_at(const GpuDriver& driver, std::string_view pci_bus_id);

// The card's name in the GPU table; `name` is CUDA's name for the card at this address. Cards of
// some names come with several memory sizes: the driver decides, or the name if there is no driver.
// Empty: no such card.
[[nodiscard]] std::string card_at(const GpuSurvey& survey, std::string_view pci_bus_id,
                                  std::string_view name);

// The same GPUs as facts. `absent_because` says why there is no NVML, even if another vendor has a
// GPU.
[[nodiscard]] GpuSurvey survey_gpus(std::span<const GpuVendor> vendors = gpu_vendors());

// The row of the GPU table for the first GPU; nothing if there is none or no row fits.
[[nodiscard]] std::optional<GpuFacts> first_gpu(const GpuSurvey& survey);

// The row for a simulated device, "sim:RTX 4090". Throws UserError if the table has no such card.
[[nodiscard]] GpuFacts simulated_gpu(std::string_view device);

}  // namespace saturate
