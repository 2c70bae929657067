// SPDX-License-Identifier: Apache-2.0
#include "cuda/nvml.h"

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cuda/nvml_reader.h"
#include "cuda/nvml_recording.h"

namespace saturate {

namespace {

constexpr const char* kAsleep = "asleep (runtime-suspended), and left asleep";

struct PciGpu {
    std::string bus_id;
    bool suspended = false;
};

// Lists the GPUs of NVIDIA's driver from the kernel, which wakes none of them. Reads only the
// driver's own folder: on a large machine the list of all devices takes longer than
// the rest of the start.
std::vector<PciGpu> pci_gpus(const std::filesystem::path& sys) {
    std::vector<PciGpu> gpus;
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(sys / "bus/pci/drivers/nvidia", error)) {
        if (!trim(read_if_there(entry.path() / "class")).starts_with("0x03")) continue;
        std::string status = read_if_there(entry.path() / "power/runtime_status");
        gpus.push_back({entry.path().filename(), trim(status) == "suspended"});
    }
    std::ranges::sort(gpus, {}, &PciGpu::bus_id);
    return gpus;
}

// Describes the GPUs without opening the driver if all of them are asleep: opening would wake them.
std::optional<GpuDriver> sleeping_driver(const NvmlSettings& settings) {
    std::vector<PciGpu> gpus = pci_gpus(settings.sys);
    if (settings.wake || gpus.empty() || !std::ranges::all_of(gpus, &PciGpu::suspended)) {
        return std::nullopt;
    }
    GpuDriver driver;
    for (const PciGpu& gpu : gpus) {
        driver.gpus.push_back({.index = static_cast<int>(driver.gpus.size()),
                               .pci_bus_id = gpu.bus_id,
                               .fault = kAsleep,
                               .suspended = true});
    }
    return driver;
}

}  // namespace

GpuSurvey survey_nvml(const NvmlSettings& settings) {
    if (auto driver = sleeping_driver(settings)) return {.driver = driver};
    NvmlCallsOpening opening = open_nvml_library();
    if (!opening.calls) return {.absent_because = opening.absent_because};
    return {.driver = nvml_driver(*opening.calls)};
}

DeviceOpening open_nvml(const NvmlSettings& settings) {
    if (sleeping_driver(settings)) {
        return {nullptr, std::string("every GPU is ") + kAsleep};
    }
    std::int64_t start_us = wall_ns() / 1000;
    NvmlCallsOpening opening = open_nvml_library();
    if (!opening.calls) return {nullptr, opening.absent_because};
    if (settings.recorder)
        opening.calls = record_nvml(std::move(opening.calls), *settings.recorder);
    return {make_nvml_reader(std::move(opening.calls), now_ns, start_us), ""};
}

NvmlRecording open_nvml_recording(const std::filesystem::path& path,
                                  std::function<std::int64_t()> now) {
    RecordedNvml recorded = read_nvml_recording(path, now);
    return {make_nvml_reader(std::move(recorded.calls), std::move(now), recorded.started_wall_us),
            recorded.seconds, recorded.notes};
}

}  // namespace saturate
