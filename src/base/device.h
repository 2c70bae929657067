// SPDX-License-Identifier: Apache-2.0
// The seam to the accelerator: everything that the rest of the program knows about a GPU, without
// CUDA or NVML types. cuda/ implements it, tests fake it, probe/ and telemetry/ read it.
#pragma once

#include <cstdint>
#include <memory>
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

// Facts that do not change while the GPU is there.
struct GpuIdentity {
    int index = 0;
    std::string name;
    std::string uuid;
    std::string pci_bus_id;
    std::optional<Capability> capability;
    std::optional<std::uint64_t> memory_total_bytes;
    std::optional<std::uint64_t> memory_used_bytes;
    std::optional<bool> mig;           // split into instances: utilisation is unknown by design
    std::optional<std::string> fault;  // why the rest is unknown, such as a lost GPU
    std::optional<bool> suspended;     // a sleeping laptop GPU, which we do not wake
};

struct GpuDriver {
    std::optional<std::string> driver_version;
    std::optional<std::string> cuda_version;  // the newest CUDA that the driver supports
    std::vector<GpuIdentity> gpus;
};

// Either a driver or the reason why there is none.
struct GpuSurvey {
    std::optional<GpuDriver> driver;
    std::string absent_because;

    [[nodiscard]] const GpuIdentity* first() const {  // null: no GPU
        return driver && !driver->gpus.empty() ? &driver->gpus[0] : nullptr;
    }
};

// Why the clocks are reduced right now: bits of DeviceSample::throttle_reasons.
enum ThrottleReason : std::uint64_t {
    kThrottleIdle = 0x1,  // nothing to do; this is no throttling
    kThrottleApplicationClocks = 0x2,
    kThrottlePowerCap = 0x4,
    kThrottleHardwareSlowdown = 0x8,
    kThrottleSyncBoost = 0x10,
    kThrottleSoftwareThermal = 0x20,
    kThrottleHardwareThermal = 0x40,
    kThrottlePowerBrake = 0x80,
};

// Time spent throttled since the driver was loaded. Only differences are meaningful.
struct ThrottleTimes {
    std::optional<std::uint64_t> power_cap_ns;
    std::optional<std::uint64_t> sync_boost_ns;
    std::optional<std::uint64_t> software_thermal_ns;
    std::optional<std::uint64_t> hardware_thermal_ns;
    std::optional<std::uint64_t> power_brake_ns;
};

// One of the driver's own samples of utilisation, several per second.
struct DriverSample {
    std::int64_t wall_us = 0;  // since 1970, from the driver
    double percent = 0;
};

enum class GpuProcessKind { compute, graphics, mps };

struct GpuProcess {
    std::int64_t pid = 0;  // the host's pid, also inside a container
    GpuProcessKind kind = GpuProcessKind::compute;
    std::optional<std::uint64_t> memory_bytes;
    std::optional<double> sm_percent;  // share of the SMs' time
};

// One reading of one GPU. An absent value is unknown, or was not read at this tick.
struct DeviceSample {
    int gpu = 0;                       // index of the GPU
    std::int64_t time_ns = 0;          // steady clock (base/clock.h)
    std::int64_t took_ns = 0;          // how long the reading took
    std::optional<std::string> fault;  // such as "GPU is lost": then nothing else is known

    std::optional<double> utilization_percent;         // share of time with any kernel resident
    std::optional<double> memory_utilization_percent;  // share of time the memory was busy
    std::vector<DriverSample> utilization_ring;  // the driver's samples since the last reading
    std::optional<double> sm_active_percent;     // share of SMs that had work (GPM)
    std::optional<double> sm_occupancy_percent;
    std::optional<double> tensor_active_percent;
    std::optional<double> dram_active_percent;

    std::optional<std::uint64_t> memory_total_bytes;
    std::optional<std::uint64_t> memory_used_bytes;
    std::optional<std::uint64_t> memory_reserved_bytes;
    std::optional<double> power_watts;  // mean of one second, if the GPU has it
    std::optional<double> power_instant_watts;
    std::optional<double> power_limit_watts;  // enforced
    std::optional<double> energy_joules;      // cumulative since the driver was loaded
    std::optional<double> temperature_celsius;
    std::optional<double> memory_temperature_celsius;
    std::optional<double> clock_sm_mhz;
    std::optional<double> clock_sm_max_mhz;
    std::optional<double> clock_memory_mhz;
    std::optional<int> performance_state;  // 0 is the fastest

    std::optional<std::uint64_t> throttle_reasons;
    ThrottleTimes throttle;
    std::optional<std::uint64_t> pcie_tx_bytes;  // cumulative since the reader started, wrap undone
    std::optional<std::uint64_t> pcie_rx_bytes;
    std::optional<std::uint64_t> nvlink_tx_bytes;  // cumulative since the reader started
    std::optional<std::uint64_t> nvlink_rx_bytes;
    std::optional<std::uint64_t> ecc_uncorrected;  // since the driver was loaded

    std::optional<std::vector<GpuProcess>> processes;  // absent: not read this time
};

// The groups of values that a reading includes. Every reading includes the cheap counters.
struct ReadTiers {
    bool medium = true;     // temperature, clock, activity, the driver's samples: about every 2 s
    bool processes = true;  // processes, memory clock, state: about every 5 s
};

// Keeps a driver open for the whole run. One thread at a time.
class DeviceReader {
  public:
    virtual ~DeviceReader() = default;
    [[nodiscard]] virtual const GpuDriver& driver() const = 0;
    // Never throws. Unreadable values are absent, and `fault` tells if the GPU is lost.
    [[nodiscard]] virtual DeviceSample read(int gpu, ReadTiers tiers) = 0;
    // Number of calls into the driver so far: a part of the cost of watching.
    [[nodiscard]] virtual std::uint64_t driver_calls() const = 0;
};

// Either a reader or the reason why there is none.
struct DeviceOpening {
    std::unique_ptr<DeviceReader> reader;
    std::string absent_because;
};

}  // namespace saturate
