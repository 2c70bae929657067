// SPDX-License-Identifier: Apache-2.0
// The seam to the accelerator: what the rest of the program knows of a GPU, without a type of CUDA
// or NVML. cuda/ implements it, tests fake it, probe/ and telemetry/ read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace saturate {

// A compute capability such as 8.9.
struct Capability {
    int major = 0;
    int minor = 0;
    auto operator<=>(const Capability&) const = default;
};

// What does not change while a GPU is there.
struct GpuIdentity {
    int index = 0;
    std::string name;
    std::string uuid;
    std::string pci_bus_id;
    std::optional<Capability> capability;
    std::optional<std::uint64_t> memory_total_bytes;
    std::optional<std::uint64_t> memory_used_bytes;
    std::optional<bool> mig;           // split into instances: utilisation is unknown by design
    std::optional<std::string> fault;  // why the rest is unknown, e.g. a lost GPU
};

struct GpuDriver {
    std::optional<std::string> driver_version;
    std::optional<std::string> cuda_version;  // the newest CUDA that the driver serves
    std::vector<GpuIdentity> gpus;
};

// Either a driver or the reason why there is none.
struct GpuSurvey {
    std::optional<GpuDriver> driver;
    std::string absent_because;
};

}  // namespace saturate
