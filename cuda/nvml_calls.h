// SPDX-License-Identifier: Apache-2.0
// The questions to NVML, without types from nvml.h. Answered by the driver's library
// (nvml_library.cpp) or a recording (nvml_recorded.cpp); nvml_recording.cpp records the answers on
// the way. Codes are nvmlReturn_t. One thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/device.h"

namespace saturate {

enum NvmlCode : int {
    kNvmlSuccess = 0,
    kNvmlInvalidArgument = 2,
    kNvmlNotSupported = 3,
    kNvmlNotFound = 6,
    kNvmlFunctionNotFound = 13,
    kNvmlGpuIsLost = 15,
    kNvmlNotReady = 27,
};

template <typename T>
struct NvmlAnswer {
    int code = kNvmlNotSupported;
    T value{};
    [[nodiscard]] bool ok() const { return code == kNvmlSuccess; }
};

struct NvmlSystem {
    std::optional<std::string> driver;
    std::optional<std::string> nvml;
    std::optional<int> cuda;  // 13000 is 13.0
    int gpus = 0;
};

struct NvmlIdentity {
    int code = kNvmlSuccess;  // if not success, nothing is known
    GpuIdentity gpu;
    std::optional<int> minor;
    std::optional<int> architecture;
    std::optional<bool> persistence_mode;
};

struct NvmlRates {
    std::uint64_t gpu = 0;
    std::uint64_t memory = 0;
};

struct NvmlMemory {
    std::uint64_t total = 0;
    std::uint64_t used = 0;
    std::uint64_t free = 0;
    std::optional<std::uint64_t> reserved;  // absent: version 1, whose `used` includes it
};

struct NvmlTimed {
    std::int64_t wall_us = 0;
    double value = 0;
};

struct NvmlField {
    unsigned id = 0;
    unsigned scope = 0;
    int code = kNvmlNotSupported;
    unsigned type = 3;       // nvmlValueType_t
    std::int64_t whole = 0;  // unsigned 64 bit values keep their bits
    double real = 0;
};

struct NvmlProcess {
    std::int64_t pid = 0;
    std::optional<std::uint64_t> used_bytes;
    std::optional<std::uint64_t> gpu_instance;
    std::optional<std::uint64_t> compute_instance;
};

struct NvmlProcessShare {
    std::int64_t wall_us = 0;
    std::int64_t pid = 0;
    unsigned sm = 0, memory = 0, encoder = 0, decoder = 0;
};

struct NvmlMetric {
    unsigned id = 0;
    int code = kNvmlNotSupported;
    double value = 0;
};

// Readings of a single number, with the names that recordings use.
enum class NvmlNumber {
    power_usage,           // milliwatts
    enforced_power_limit,  // milliwatts
    total_energy,          // millijoules
    temperature,           // of sensor `arg`
    clock,                 // MHz of clock `arg`: 1 SM, 2 memory
    max_clock,
    performance_state,
    clocks_event_reasons,
};
[[nodiscard]] std::string_view nvml_number_name(NvmlNumber what);  // "PowerUsage"
[[nodiscard]] bool nvml_number_has_arg(NvmlNumber what);
[[nodiscard]] std::string_view nvml_process_call(GpuProcessKind kind);

class NvmlCalls {
  public:
    virtual ~NvmlCalls() = default;
    virtual const NvmlSystem& system() = 0;
    virtual const NvmlIdentity& identity(int gpu) = 0;
    virtual std::string error_text(int code) = 0;
    virtual NvmlAnswer<NvmlRates> rates(int gpu) = 0;
    virtual NvmlAnswer<NvmlMemory> memory(int gpu) = 0;
    virtual NvmlAnswer<std::uint64_t> number(int gpu, NvmlNumber what, unsigned arg) = 0;
    virtual NvmlAnswer<std::vector<NvmlTimed>> samples(int gpu, unsigned type,
                                                       std::int64_t since_us) = 0;
    // Fills the code and value of each field and returns the code of the whole call.
    virtual int fields(int gpu, std::span<NvmlField> fields) = 0;
    virtual NvmlAnswer<std::vector<NvmlProcess>> processes(int gpu, GpuProcessKind kind) = 0;
    virtual NvmlAnswer<std::vector<NvmlProcessShare>> process_shares(int gpu,
                                                                     std::int64_t since_us) = 0;
    // GPM metrics over the time since the last call; kNvmlNotReady if that is too short.
    virtual NvmlAnswer<std::vector<NvmlMetric>> activity(int gpu,
                                                         std::span<const unsigned> ids) = 0;
    [[nodiscard]] virtual std::uint64_t calls() const = 0;  // into the driver so far
};

struct NvmlCallsOpening {
    std::unique_ptr<NvmlCalls> calls;
    std::string absent_because;
};
[[nodiscard]] NvmlCallsOpening open_nvml_library();

// Explains why the library is missing, from what `proc` says about the kernel.
[[nodiscard]] std::string why_no_nvml(const std::filesystem::path& proc);

}  // namespace saturate
