// SPDX-License-Identifier: Apache-2.0
#include "process/gpus.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cuda/nvml.h"
#include "telemetry/run_device.h"
#include "telemetry/sysfs_device.h"

namespace saturate {

namespace {

DeviceOpening nvml_reader(const GpuAccess& access) {
    return open_nvml({.wake = access.wake, .recorder = access.recorder});
}

GpuSurvey nvml_survey() { return survey_nvml(); }

DeviceOpening kernel_reader(const GpuAccess&) { return open_sysfs(); }

GpuSurvey kernel_survey() {
    DeviceOpening opening = open_sysfs();
    if (!opening.reader) return {.absent_because = opening.absent_because};
    return {.driver = opening.reader->driver()};
}

constexpr GpuVendor kVendors[] = {
    {"nvml", "", nvml_reader, nvml_survey},
    // For AMD's driver. Of NVIDIA's cards the kernel only knows the names.
    {"kernel", "GPU names, and what the kernel driver reports", kernel_reader, kernel_survey},
};

}  // namespace

std::span<const GpuVendor> gpu_vendors() { return kVendors; }

Devices open_gpus(const GpuAccess& access, const std::optional<std::string>& job_folder,
                  std::span<const GpuVendor> vendors) {
    std::string why;  // reason of the first vendor, which users expect
    for (const GpuVendor& vendor : vendors) {
        DeviceOpening opening = vendor.open(access);
        if (!opening.reader) {
            if (why.empty()) why = opening.absent_because;
        } else {
            Devices out{.reader = std::move(opening.reader), .source = std::string(vendor.source)};
            if (!vendor.tells.empty())
                out.notes.push_back(fmt::format("NVML: {}; taken from the {}: {}", why,
                                                vendor.source, vendor.tells));
            return out;
        }
        if (job_folder) {
            return {.reader = open_run_device(*job_folder),
                    .source = "run " + *job_folder,
                    .notes = {fmt::format("NVML: {}; the busy share is the job's own count in {}",
                                          why, *job_folder)}};
        }
    }
    return {.absent_because = why, .source = "none"};
}

std::optional<int> gpu_at(const GpuDriver& driver, std::string_view pci_bus_id) {
    auto without_zeros = [](std::string_view text) {
        return lower(text.substr(std::min(text.find_first_not_of('0'), text.size())));
    };
    if (pci_bus_id.empty()) return std::nullopt;
    for (const GpuIdentity& gpu : driver.gpus) {
        if (without_zeros(gpu.pci_bus_id) == without_zeros(pci_bus_id)) return gpu.index;
    }
    return std::nullopt;
}

std::string card_at(const GpuSurvey& survey, std::string_view pci_bus_id, std::string_view name) {
    auto match = match_gpu(name);
    auto index = survey.driver ? gpu_at(*survey.driver, pci_bus_id) : std::nullopt;
    if (index) {
        for (const GpuIdentity& gpu : survey.driver->gpus) {
            if (gpu.index == *index) match = match_gpu(gpu);
        }
    }
    return match ? match->facts.name : "";
}

GpuSurvey survey_gpus(std::span<const GpuVendor> vendors) {
    std::string why;
    for (const GpuVendor& vendor : vendors) {
        GpuSurvey survey = vendor.survey();
        if (survey.driver) return {.driver = survey.driver, .absent_because = why};
        if (why.empty()) why = survey.absent_because;
    }
    return {.absent_because = why};
}

std::optional<GpuFacts> first_gpu(const GpuSurvey& survey) {
    const GpuIdentity* gpu = survey.first();
    auto match = gpu ? match_gpu(*gpu) : std::nullopt;
    return match ? std::optional(match->facts) : std::nullopt;
}

GpuFacts simulated_gpu(std::string_view device) {
    constexpr std::string_view kPrefix = "sim:";
    auto match = match_gpu(device.substr(kPrefix.size()));
    if (!match) {
        throw UserError(
            {.found = fmt::format("--device is {}", in_quotes(device)),
             .expected = "sim: and a GPU of the table (saturate optimize --gpu lists them)"});
    }
    return match->facts;
}

}  // namespace saturate
