// SPDX-License-Identifier: Apache-2.0
// Loads the driver's own library at run time. Each symbol is looked up separately: a missing one
// disables only its reading.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>
// Older drivers only have the old names of two readings, which are deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#include "base/clock.h"
#include "cuda/nvml_calls.h"

namespace saturate {

namespace {

struct Unload {
    void operator()(void* library) const { ::dlclose(library); }
};

// The functions in use; null if the driver lacks one.
struct Functions {
    std::unique_ptr<void, Unload> library;

#define SATURATE_NVML(member, symbol) decltype(&symbol) member = look_up<decltype(&symbol)>(#symbol)
    template <typename Function>
    Function look_up(const char* symbol) {
        return reinterpret_cast<Function>(::dlsym(library.get(), symbol));
    }
    explicit Functions(void* opened) : library(opened) {}

    SATURATE_NVML(init, nvmlInitWithFlags);
    SATURATE_NVML(shutdown, nvmlShutdown);
    SATURATE_NVML(error_string, nvmlErrorString);
    SATURATE_NVML(driver_version, nvmlSystemGetDriverVersion);
    SATURATE_NVML(nvml_version, nvmlSystemGetNVMLVersion);
    SATURATE_NVML(cuda_version, nvmlSystemGetCudaDriverVersion_v2);
    SATURATE_NVML(count, nvmlDeviceGetCount_v2);
    SATURATE_NVML(handle, nvmlDeviceGetHandleByIndex_v2);
    SATURATE_NVML(name, nvmlDeviceGetName);
    SATURATE_NVML(uuid, nvmlDeviceGetUUID);
    SATURATE_NVML(pci_info, nvmlDeviceGetPciInfo_v3);
    SATURATE_NVML(minor, nvmlDeviceGetMinorNumber);
    SATURATE_NVML(architecture, nvmlDeviceGetArchitecture);
    SATURATE_NVML(persistence, nvmlDeviceGetPersistenceMode);
    SATURATE_NVML(capability, nvmlDeviceGetCudaComputeCapability);
    SATURATE_NVML(mig_mode, nvmlDeviceGetMigMode);
    SATURATE_NVML(rates, nvmlDeviceGetUtilizationRates);
    SATURATE_NVML(samples, nvmlDeviceGetSamples);
    SATURATE_NVML(memory_v2, nvmlDeviceGetMemoryInfo_v2);
    SATURATE_NVML(memory, nvmlDeviceGetMemoryInfo);
    SATURATE_NVML(power_usage, nvmlDeviceGetPowerUsage);
    SATURATE_NVML(power_limit, nvmlDeviceGetEnforcedPowerLimit);
    SATURATE_NVML(energy, nvmlDeviceGetTotalEnergyConsumption);
    SATURATE_NVML(temperature_v, nvmlDeviceGetTemperatureV);
    SATURATE_NVML(temperature, nvmlDeviceGetTemperature);
    SATURATE_NVML(clock, nvmlDeviceGetClockInfo);
    SATURATE_NVML(max_clock, nvmlDeviceGetMaxClockInfo);
    SATURATE_NVML(performance_state, nvmlDeviceGetPerformanceState);
    SATURATE_NVML(event_reasons, nvmlDeviceGetCurrentClocksEventReasons);
    SATURATE_NVML(throttle_reasons, nvmlDeviceGetCurrentClocksThrottleReasons);
    SATURATE_NVML(fields, nvmlDeviceGetFieldValues);
    SATURATE_NVML(process_shares, nvmlDeviceGetProcessUtilization);
    SATURATE_NVML(gpm_support, nvmlGpmQueryDeviceSupport);
    SATURATE_NVML(gpm_alloc, nvmlGpmSampleAlloc);
    SATURATE_NVML(gpm_free, nvmlGpmSampleFree);
    SATURATE_NVML(gpm_sample, nvmlGpmSampleGet);
    SATURATE_NVML(gpm_metrics, nvmlGpmMetricsGet);
    // By kind. Versions 2 and 3 differ only in the length of an entry.
    using Processes = decltype(&nvmlDeviceGetComputeRunningProcesses_v3);
    Processes processes[3] = {first_of({"nvmlDeviceGetComputeRunningProcesses_v3",
                                        "nvmlDeviceGetComputeRunningProcesses_v2"}),
                              first_of({"nvmlDeviceGetGraphicsRunningProcesses_v3",
                                        "nvmlDeviceGetGraphicsRunningProcesses_v2"}),
                              first_of({"nvmlDeviceGetMPSComputeRunningProcesses_v3",
                                        "nvmlDeviceGetMPSComputeRunningProcesses_v2"})};
#undef SATURATE_NVML

    Processes first_of(std::initializer_list<const char*> symbols) {
        for (const char* symbol : symbols) {
            if (auto function = look_up<Processes>(symbol)) return function;
        }
        return nullptr;
    }
};

// The two samples of a GPU that GPM compares.
struct Gpm {
    nvmlGpmSample_t last = nullptr;
    nvmlGpmSample_t next = nullptr;
    std::int64_t last_ns = 0;  // 0: no sample yet
};

struct Gpu {
    nvmlDevice_t device = nullptr;
    NvmlIdentity identity;
    std::optional<bool> has_gpm;
    Gpm gpm;
};

class NvmlLibrary final : public NvmlCalls {
  public:
    explicit NvmlLibrary(void* library) : f_(library) {}
    ~NvmlLibrary() override {
        for (Gpu& gpu : gpus_) {
            if (gpu.gpm.last) f_.gpm_free(gpu.gpm.last);
            if (gpu.gpm.next) f_.gpm_free(gpu.gpm.next);
        }
        if (started_ && f_.shutdown) f_.shutdown();
    }

    // Returns an empty string, or why it could not start.
    std::string start();

    const NvmlSystem& system() override { return system_; }
    const NvmlIdentity& identity(int gpu) override { return at(gpu).identity; }
    std::string error_text(int code) override {
        if (f_.error_string) return f_.error_string(static_cast<nvmlReturn_t>(code));
        return fmt::format("NVML error {}", code);
    }
    NvmlAnswer<NvmlRates> rates(int gpu) override;
    NvmlAnswer<NvmlMemory> memory(int gpu) override;
    NvmlAnswer<std::uint64_t> number(int gpu, NvmlNumber what, unsigned arg) override;
    NvmlAnswer<std::vector<NvmlTimed>> samples(int gpu, unsigned type,
                                               std::int64_t since_us) override;
    int fields(int gpu, std::span<NvmlField> fields) override;
    NvmlAnswer<std::vector<NvmlProcess>> processes(int gpu, GpuProcessKind kind) override;
    NvmlAnswer<std::vector<NvmlProcessShare>> process_shares(int gpu,
                                                             std::int64_t since_us) override;
    NvmlAnswer<std::vector<NvmlMetric>> activity(int gpu, std::span<const unsigned> ids) override;
    [[nodiscard]] std::uint64_t calls() const override { return calls_; }

  private:
    Gpu& at(int gpu) { return gpus_.at(static_cast<std::size_t>(gpu)); }

    // Calls a function that may be missing.
    template <typename Function, typename... Args>
    int ask(Function function, Args... args) {
        if (!function) return kNvmlFunctionNotFound;
        ++calls_;
        return static_cast<int>(function(args...));
    }
    // Reads one number of type T.
    template <typename T, typename Function, typename... Args>
    NvmlAnswer<std::uint64_t> one(Function function, Args... args) {
        T value{};
        NvmlAnswer<std::uint64_t> answer{.code = ask(function, args..., &value)};
        if (answer.ok()) answer.value = static_cast<std::uint64_t>(value);
        return answer;
    }
    NvmlAnswer<std::uint64_t> temperature(nvmlDevice_t device, unsigned sensor);
    void identify(int index);
    bool prepare_gpm(Gpu& gpu);

    Functions f_;
    NvmlSystem system_;
    std::vector<Gpu> gpus_;
    std::uint64_t calls_ = 0;
    bool started_ = false;
    // nvmlGpmMetricsGet_t grew from 8424 to 19104 bytes without a new version number: a newer
    // driver may write past the end of our header's struct.
    alignas(16) unsigned char gpm_buffer_[32768];
};

std::string NvmlLibrary::start() {
    if (!f_.init) {
        return "libnvidia-ml.so.1 has no nvmlInitWithFlags: the driver is older than 2017";
    }
    int code = ask(f_.init, static_cast<unsigned>(NVML_INIT_FLAG_NO_GPUS));
    if (code != kNvmlSuccess) return error_text(code);
    started_ = true;
    char text[NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE + NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = {};
    auto length = static_cast<unsigned>(sizeof text);
    if (ask(f_.driver_version, text, length) == kNvmlSuccess) system_.driver = text;
    if (ask(f_.nvml_version, text, length) == kNvmlSuccess) system_.nvml = text;
    int cuda = 0;
    if (ask(f_.cuda_version, &cuda) == kNvmlSuccess) system_.cuda = cuda;
    unsigned count = 0;
    if (ask(f_.count, &count) == kNvmlSuccess) system_.gpus = static_cast<int>(count);
    gpus_.resize(static_cast<std::size_t>(system_.gpus));
    for (int index = 0; index < system_.gpus; ++index) identify(index);
    return "";
}

void NvmlLibrary::identify(int index) {
    Gpu& gpu = at(index);
    NvmlIdentity& id = gpu.identity;
    id.gpu.index = index;
    id.code = ask(f_.handle, static_cast<unsigned>(index), &gpu.device);
    if (id.code != kNvmlSuccess) {
        id.gpu.fault = error_text(id.code);
        return;
    }
    char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = {};
    auto length = static_cast<unsigned>(sizeof text);
    int named = ask(f_.name, gpu.device, text, length);
    if (named == kNvmlSuccess) id.gpu.name = text;
    if (named == kNvmlGpuIsLost) id.gpu.fault = error_text(named);
    if (ask(f_.uuid, gpu.device, text, length) == kNvmlSuccess) id.gpu.uuid = text;
    nvmlPciInfo_t pci{};
    if (ask(f_.pci_info, gpu.device, &pci) == kNvmlSuccess) id.gpu.pci_bus_id = pci.busId;
    Capability capability;
    if (ask(f_.capability, gpu.device, &capability.major, &capability.minor) == kNvmlSuccess) {
        id.gpu.capability = capability;
    }
    if (auto answer = memory(index); answer.ok()) {
        id.gpu.memory_total_bytes = answer.value.total;
        id.gpu.memory_used_bytes = answer.value.used;
    }
    unsigned mig = 0, pending = 0;
    if (ask(f_.mig_mode, gpu.device, &mig, &pending) == kNvmlSuccess) {
        id.gpu.mig = mig == NVML_DEVICE_MIG_ENABLE;
    }
    if (auto answer = one<unsigned>(f_.minor, gpu.device); answer.ok()) {
        id.minor = static_cast<int>(answer.value);
    }
    if (auto answer = one<nvmlDeviceArchitecture_t>(f_.architecture, gpu.device); answer.ok()) {
        id.architecture = static_cast<int>(answer.value);
    }
    if (auto answer = one<nvmlEnableState_t>(f_.persistence, gpu.device); answer.ok()) {
        id.persistence_mode = answer.value != 0;
    }
}

NvmlAnswer<NvmlRates> NvmlLibrary::rates(int gpu) {
    nvmlUtilization_t value{};
    int code = ask(f_.rates, at(gpu).device, &value);
    return {code, {value.gpu, value.memory}};
}

NvmlAnswer<NvmlMemory> NvmlLibrary::memory(int gpu) {
    nvmlDevice_t device = at(gpu).device;
    nvmlMemory_v2_t second{};
    second.version = nvmlMemory_v2;  // the macro includes the size; a bare 2 is rejected
    int code = ask(f_.memory_v2, device, &second);
    if (code == kNvmlSuccess) {
        return {code, {second.total, second.used, second.free, second.reserved}};
    }
    if (code == kNvmlGpuIsLost) return {code, {}};
    nvmlMemory_t first{};
    code = ask(f_.memory, device, &first);
    return {code, {first.total, first.used, first.free, std::nullopt}};
}

NvmlAnswer<std::uint64_t> NvmlLibrary::temperature(nvmlDevice_t device, unsigned sensor) {
    nvmlTemperature_t value{};
    value.version = nvmlTemperature_v1;
    value.sensorType = static_cast<nvmlTemperatureSensors_t>(sensor);
    int code = ask(f_.temperature_v, device, &value);
    if (code == kNvmlSuccess)
        return {code, static_cast<std::uint64_t>(std::max(0, value.temperature))};
    if (code == kNvmlGpuIsLost) return {code, 0};
    return one<unsigned>(f_.temperature, device, static_cast<nvmlTemperatureSensors_t>(sensor));
}

NvmlAnswer<std::uint64_t> NvmlLibrary::number(int gpu, NvmlNumber what, unsigned arg) {
    nvmlDevice_t device = at(gpu).device;
    auto clock = static_cast<nvmlClockType_t>(arg);
    switch (what) {
        case NvmlNumber::power_usage:
            return one<unsigned>(f_.power_usage, device);
        case NvmlNumber::enforced_power_limit:
            return one<unsigned>(f_.power_limit, device);
        case NvmlNumber::total_energy:
            return one<unsigned long long>(f_.energy, device);
        case NvmlNumber::temperature:
            return temperature(device, arg);
        case NvmlNumber::clock:
            return one<unsigned>(f_.clock, device, clock);
        case NvmlNumber::max_clock:
            return one<unsigned>(f_.max_clock, device, clock);
        case NvmlNumber::performance_state:
            return one<nvmlPstates_t>(f_.performance_state, device);
        case NvmlNumber::clocks_event_reasons:
            if (f_.event_reasons) return one<unsigned long long>(f_.event_reasons, device);
            return one<unsigned long long>(f_.throttle_reasons, device);
    }
    return {};
}

double sample_value(const nvmlValue_t& value, nvmlValueType_t type) {
    switch (type) {
        case NVML_VALUE_TYPE_DOUBLE:
            return value.dVal;
        case NVML_VALUE_TYPE_UNSIGNED_INT:
            return value.uiVal;
        case NVML_VALUE_TYPE_UNSIGNED_LONG:
            return static_cast<double>(value.ulVal);
        case NVML_VALUE_TYPE_SIGNED_LONG_LONG:
            return static_cast<double>(value.sllVal);
        case NVML_VALUE_TYPE_SIGNED_INT:
            return value.siVal;
        case NVML_VALUE_TYPE_UNSIGNED_SHORT:
            return value.usVal;
        default:
            return static_cast<double>(value.ullVal);
    }
}

NvmlAnswer<std::vector<NvmlTimed>> NvmlLibrary::samples(int gpu, unsigned type,
                                                        std::int64_t since_us) {
    nvmlSample_t ring[256];  // larger than the driver's ring
    unsigned count = std::size(ring);
    nvmlValueType_t value_type{};
    NvmlAnswer<std::vector<NvmlTimed>> answer;
    answer.code = ask(f_.samples, at(gpu).device, static_cast<nvmlSamplingType_t>(type),
                      static_cast<unsigned long long>(since_us), &value_type, &count, ring);
    if (!answer.ok()) return answer;
    for (unsigned i = 0; i < std::min<unsigned>(count, std::size(ring)); ++i) {
        auto stamp = static_cast<std::int64_t>(ring[i].timeStamp);
        if (stamp > since_us)
            answer.value.push_back({stamp, sample_value(ring[i].sampleValue, value_type)});
    }
    return answer;
}

int NvmlLibrary::fields(int gpu, std::span<NvmlField> fields) {
    nvmlFieldValue_t values[32] = {};
    std::size_t count = std::min(fields.size(), std::size(values));
    for (std::size_t i = 0; i < count; ++i) {
        values[i].fieldId = fields[i].id;
        values[i].scopeId = fields[i].scope;
    }
    int code = ask(f_.fields, at(gpu).device, static_cast<int>(count), values);
    for (std::size_t i = 0; i < count; ++i) {
        NvmlField& field = fields[i];
        field.code = code != kNvmlSuccess ? code : static_cast<int>(values[i].nvmlReturn);
        if (field.code != kNvmlSuccess) continue;
        field.type = static_cast<unsigned>(values[i].valueType);
        field.real = sample_value(values[i].value, values[i].valueType);
        field.whole = field.type == NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
                          ? static_cast<std::int64_t>(values[i].value.ullVal)
                      : field.type == NVML_VALUE_TYPE_UNSIGNED_LONG
                          ? static_cast<std::int64_t>(values[i].value.ulVal)
                          : static_cast<std::int64_t>(field.real);
    }
    return code;
}

// Entries have 24 or 32 bytes, depending on the driver, under the same function name. How far the
// buffer was written shows which. `room` is more than twice `count`, so a driver that also clears
// the unused entries cannot be mistaken.
std::size_t process_stride(std::span<const unsigned char> buffer, std::size_t count,
                           std::size_t room, unsigned char untouched) {
    std::size_t written = buffer.size();
    while (written > 0 && buffer[written - 1] == untouched) --written;
    if (written <= count * 24) return 24;
    if (written <= count * 32) return 32;
    return written <= room * 24 ? 24 : 32;
}

NvmlAnswer<std::vector<NvmlProcess>> NvmlLibrary::processes(int gpu, GpuProcessKind kind) {
    constexpr unsigned char kUntouched = 0xE7;
    NvmlAnswer<std::vector<NvmlProcess>> answer;
    unsigned room = 64;
    std::vector<unsigned char> buffer;
    unsigned count = 0;
    // Processes may appear between two calls: offer more room until the list fits
    // with plenty to spare.
    for (int attempt = 0; attempt < 5; ++attempt) {
        buffer.assign(std::size_t{room} * 32, kUntouched);
        count = room;
        answer.code = ask(f_.processes[static_cast<int>(kind)], at(gpu).device, &count,
                          reinterpret_cast<nvmlProcessInfo_t*>(buffer.data()));
        bool too_small = answer.code == NVML_ERROR_INSUFFICIENT_SIZE;
        if (!too_small && !(answer.ok() && count > room / 2)) break;
        room = std::max(room, count) * 2 + 16;
    }
    if (!answer.ok()) return answer;
    std::size_t stride = process_stride(buffer, count, room, kUntouched);
    constexpr std::uint64_t kNone = ~std::uint64_t{0};
    for (std::size_t i = 0; i < count; ++i) {
        nvmlProcessInfo_t entry;
        std::memcpy(&entry, buffer.data() + i * stride, sizeof entry);
        NvmlProcess process{.pid = entry.pid};
        if (entry.usedGpuMemory != kNone) process.used_bytes = entry.usedGpuMemory;
        if (entry.gpuInstanceId != ~0u) process.gpu_instance = entry.gpuInstanceId;
        if (entry.computeInstanceId != ~0u) process.compute_instance = entry.computeInstanceId;
        answer.value.push_back(process);
    }
    return answer;
}

NvmlAnswer<std::vector<NvmlProcessShare>> NvmlLibrary::process_shares(int gpu,
                                                                      std::int64_t since_us) {
    NvmlAnswer<std::vector<NvmlProcessShare>> answer;
    std::vector<nvmlProcessUtilizationSample_t> list(128);
    auto since = static_cast<unsigned long long>(since_us);
    for (int attempt = 0; attempt < 3; ++attempt) {
        auto count = static_cast<unsigned>(list.size());
        answer.code = ask(f_.process_shares, at(gpu).device, list.data(), &count, since);
        if (answer.code == NVML_ERROR_INSUFFICIENT_SIZE) {
            list.resize(std::max<std::size_t>(count, list.size()) * 2);
            continue;
        }
        list.resize(std::min<std::size_t>(count, list.size()));
        break;
    }
    if (!answer.ok()) return answer;
    for (const auto& entry : list) {
        answer.value.push_back({static_cast<std::int64_t>(entry.timeStamp), entry.pid, entry.smUtil,
                                entry.memUtil, entry.encUtil, entry.decUtil});
    }
    return answer;
}

bool NvmlLibrary::prepare_gpm(Gpu& gpu) {
    if (gpu.has_gpm) return *gpu.has_gpm;
    gpu.has_gpm = false;
    nvmlGpmSupport_t support{};
    support.version = NVML_GPM_SUPPORT_VERSION;
    if (!f_.gpm_alloc || !f_.gpm_free || !f_.gpm_sample || !f_.gpm_metrics) return false;
    if (ask(f_.gpm_support, gpu.device, &support) != kNvmlSuccess || !support.isSupportedDevice) {
        return false;
    }
    gpu.has_gpm = ask(f_.gpm_alloc, &gpu.gpm.last) == kNvmlSuccess &&
                  ask(f_.gpm_alloc, &gpu.gpm.next) == kNvmlSuccess;
    return *gpu.has_gpm;
}

NvmlAnswer<std::vector<NvmlMetric>> NvmlLibrary::activity(int index,
                                                          std::span<const unsigned> ids) {
    Gpu& gpu = at(index);
    if (!prepare_gpm(gpu)) return {kNvmlNotSupported, {}};
    constexpr std::int64_t kNearest = 100'000'000;  // the counters are updated every 100 ms
    std::int64_t now = now_ns();
    if (gpu.gpm.last_ns != 0 && now - gpu.gpm.last_ns < kNearest) return {kNvmlNotReady, {}};
    bool is_first = gpu.gpm.last_ns == 0;
    int code = ask(f_.gpm_sample, gpu.device, is_first ? gpu.gpm.last : gpu.gpm.next);
    if (code != kNvmlSuccess) return {code, {}};
    gpu.gpm.last_ns = now;
    if (is_first) return {kNvmlNotReady, {}};
    std::memset(gpm_buffer_, 0, sizeof gpm_buffer_);
    auto* request = reinterpret_cast<nvmlGpmMetricsGet_t*>(gpm_buffer_);
    request->version = NVML_GPM_METRICS_GET_VERSION;
    request->numMetrics = static_cast<unsigned>(ids.size());
    request->sample1 = gpu.gpm.last;
    request->sample2 = gpu.gpm.next;
    for (std::size_t i = 0; i < ids.size(); ++i) request->metrics[i].metricId = ids[i];
    NvmlAnswer<std::vector<NvmlMetric>> answer{.code = ask(f_.gpm_metrics, request)};
    std::swap(gpu.gpm.last, gpu.gpm.next);
    for (std::size_t i = 0; answer.ok() && i < ids.size(); ++i) {
        answer.value.push_back(
            {ids[i], static_cast<int>(request->metrics[i].nvmlReturn), request->metrics[i].value});
    }
    return answer;
}

}  // namespace

std::string why_no_nvml(const std::filesystem::path& proc) {
    std::error_code error;
    if (!std::filesystem::exists(proc / "driver/nvidia/version", error))
        return "libnvidia-ml.so.1 was not found: no NVIDIA driver";
    return "libnvidia-ml.so.1 was not found, but the kernel has the driver: a container needs "
           "NVIDIA_DRIVER_CAPABILITIES=compute,utility";
}

NvmlCallsOpening open_nvml_library() {
    void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    // WSL 2: the driver is Windows' own, in a folder that not every distribution's loader searches.
    if (!library) library = ::dlopen("/usr/lib/wsl/lib/libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return {nullptr, why_no_nvml("/proc")};
    auto calls = std::make_unique<NvmlLibrary>(library);
    std::string why = calls->start();
    if (!why.empty()) return {nullptr, why};
    return {std::move(calls), ""};
}

}  // namespace saturate
