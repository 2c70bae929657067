// SPDX-License-Identifier: Apache-2.0
#include "cuda/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <nvml.h>

#include <memory>

namespace saturate {

namespace {

struct Unload {
    void operator()(void* library) const { ::dlclose(library); }
};

// The functions in use, null where the driver has none.
struct Nvml {
    std::unique_ptr<void, Unload> library;
    decltype(&nvmlInitWithFlags) init = nullptr;
    decltype(&nvmlShutdown) shutdown = nullptr;
    decltype(&nvmlErrorString) error_string = nullptr;
    decltype(&nvmlSystemGetDriverVersion) driver_version = nullptr;
    decltype(&nvmlSystemGetCudaDriverVersion_v2) cuda_version = nullptr;
    decltype(&nvmlDeviceGetCount_v2) count = nullptr;
    decltype(&nvmlDeviceGetHandleByIndex_v2) handle = nullptr;
    decltype(&nvmlDeviceGetName) name = nullptr;
    decltype(&nvmlDeviceGetUUID) uuid = nullptr;
    decltype(&nvmlDeviceGetPciInfo_v3) pci_info = nullptr;
    decltype(&nvmlDeviceGetCudaComputeCapability) capability = nullptr;
    decltype(&nvmlDeviceGetMemoryInfo) memory = nullptr;
    decltype(&nvmlDeviceGetMigMode) mig_mode = nullptr;

    template <typename Function>
    void load(Function& function, const char* symbol) {
        function = reinterpret_cast<Function>(::dlsym(library.get(), symbol));
    }

    explicit Nvml(void* opened) : library(opened) {
        load(init, "nvmlInitWithFlags");
        load(shutdown, "nvmlShutdown");
        load(error_string, "nvmlErrorString");
        load(driver_version, "nvmlSystemGetDriverVersion");
        load(cuda_version, "nvmlSystemGetCudaDriverVersion_v2");
        load(count, "nvmlDeviceGetCount_v2");
        load(handle, "nvmlDeviceGetHandleByIndex_v2");
        load(name, "nvmlDeviceGetName");
        load(uuid, "nvmlDeviceGetUUID");
        load(pci_info, "nvmlDeviceGetPciInfo_v3");
        load(capability, "nvmlDeviceGetCudaComputeCapability");
        load(memory, "nvmlDeviceGetMemoryInfo");
        load(mig_mode, "nvmlDeviceGetMigMode");
    }

    // Calls a function that may be missing or refuse; true when it filled its results.
    template <typename Function, typename... Args>
    bool ask(Function function, Args... args) const {
        return function && function(args...) == NVML_SUCCESS;
    }

    [[nodiscard]] std::string error_text(nvmlReturn_t code) const {
        return error_string ? error_string(code)
                            : fmt::format("NVML error {}", static_cast<int>(code));
    }
};

GpuIdentity identify(const Nvml& nvml, unsigned index) {
    GpuIdentity gpu{.index = static_cast<int>(index)};
    nvmlDevice_t device = nullptr;
    nvmlReturn_t opened = nvml.handle ? nvml.handle(index, &device) : NVML_ERROR_FUNCTION_NOT_FOUND;
    if (opened != NVML_SUCCESS) {
        gpu.fault = nvml.error_text(opened);
        return gpu;
    }
    char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE] = {};
    if (nvml.ask(nvml.name, device, text, static_cast<unsigned>(sizeof text))) gpu.name = text;
    if (nvml.ask(nvml.uuid, device, text, static_cast<unsigned>(sizeof text))) gpu.uuid = text;
    nvmlPciInfo_t pci{};
    if (nvml.ask(nvml.pci_info, device, &pci)) gpu.pci_bus_id = pci.busId;
    Capability capability;
    if (nvml.ask(nvml.capability, device, &capability.major, &capability.minor))
        gpu.capability = capability;
    nvmlMemory_t memory{};
    if (nvml.ask(nvml.memory, device, &memory)) {
        gpu.memory_total_bytes = memory.total;
        gpu.memory_used_bytes = memory.used;
    }
    unsigned mig = 0, mig_pending = 0;
    if (nvml.ask(nvml.mig_mode, device, &mig, &mig_pending))
        gpu.mig = mig == NVML_DEVICE_MIG_ENABLE;
    return gpu;
}

}  // namespace

GpuSurvey survey_nvml() {
    void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return {.absent_because = "libnvidia-ml.so.1 is not there: no NVIDIA driver"};
    Nvml nvml(library);
    if (!nvml.init)
        return {.absent_because =
                    "libnvidia-ml.so.1 has no nvmlInitWithFlags: the driver is older than 2017"};
    nvmlReturn_t started = nvml.init(NVML_INIT_FLAG_NO_GPUS);
    if (started != NVML_SUCCESS) return {.absent_because = nvml.error_text(started)};

    GpuDriver driver;
    char version[NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE] = {};
    if (nvml.ask(nvml.driver_version, version, static_cast<unsigned>(sizeof version)))
        driver.driver_version = version;
    int cuda = 0;
    if (nvml.ask(nvml.cuda_version, &cuda))
        driver.cuda_version = fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10);
    unsigned count = 0;
    nvml.ask(nvml.count, &count);
    for (unsigned index = 0; index < count; ++index) driver.gpus.push_back(identify(nvml, index));
    nvml.ask(nvml.shutdown);
    return {.driver = driver};
}

}  // namespace saturate
