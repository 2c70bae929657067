// SPDX-License-Identifier: Apache-2.0
// Exports starting and stopping, versions, handles and the constant facts of a GPU.
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <cstdio>

#include "base/text.h"
#include "support/nvml_replay/driver.h"

using namespace saturate;
using namespace saturate::nvml_replay;

namespace {

nvmlReturn_t start(const char* symbol) {
    Driver& driver = Driver::instance();
    std::lock_guard lock(driver.mutex);
    driver.counts.add(symbol, false);
    return driver.start();
}

nvmlReturn_t version_text(const char* symbol, const char* member, char* out, unsigned length) {
    Call call(symbol);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    return give_text(call.driver.recording->header()[member], out, length);
}

nvmlReturn_t count(const char* symbol, unsigned* out) {
    Call call(symbol);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    *out = static_cast<unsigned>(call.driver.recording->gpu_count());
    return NVML_SUCCESS;
}

nvmlReturn_t by_index(const char* symbol, unsigned index, nvmlDevice_t* out) {
    Call call(symbol);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out || index >= static_cast<unsigned>(call.driver.recording->gpu_count()))
        return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    *out = call.driver.handle(static_cast<int>(index));
    return NVML_SUCCESS;
}

nvmlReturn_t by_member(const char* symbol, const char* member, const char* wanted,
                       nvmlDevice_t* out) {
    Call call(symbol);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out || !wanted) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    for (int i = 0; i < call.driver.recording->gpu_count(); ++i) {
        if (call.driver.recording->gpu(i)[member].string() == wanted) {
            *out = call.driver.handle(i);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

// Returns the instances of a GPU in MIG mode.
Json::Array instances(const Call& call) {
    const Answer* answer = call.answer("MigDevices");
    return answer && answer->rc == 0 ? answer->value().items() : Json::Array{};
}

nvmlReturn_t fact_text(const char* symbol, nvmlDevice_t device, const char* member, char* out,
                       unsigned length) {
    Call call(symbol, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    std::string_view wanted = member;
    if (call.device.mig >= 0 && wanted == "uuid")
        return give_text(instances(call).at(static_cast<std::size_t>(call.device.mig))["uuid"], out,
                         length);
    return give_text(call.facts()[member], out, length);
}

nvmlReturn_t instance_number(const char* symbol, nvmlDevice_t device, const char* member,
                             unsigned* out) {
    Call call(symbol, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    if (call.device.mig < 0) return NVML_ERROR_INVALID_ARGUMENT;
    return give_number(instances(call).at(static_cast<std::size_t>(call.device.mig))[member], out);
}

nvmlReturn_t pci_info(const char* symbol, nvmlDevice_t device, nvmlPciInfo_t* out) {
    Call call(symbol, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    auto id = call.facts()["pci_bus_id"].string();
    if (!id) return NVML_ERROR_NOT_SUPPORTED;
    poison(out);
    if (std::sscanf(id->c_str(), "%x:%x:%x", &out->domain, &out->bus, &out->device) != 3)
        return NVML_ERROR_UNKNOWN;
    out->pciDeviceId = 0x233010DE;
    out->pciSubSystemId = 0x16C110DE;
    std::snprintf(out->busId, sizeof out->busId, NVML_DEVICE_PCI_BUS_ID_FMT, out->domain, out->bus,
                  out->device);
    std::snprintf(out->busIdLegacy, sizeof out->busIdLegacy, NVML_DEVICE_PCI_BUS_ID_LEGACY_FMT,
                  out->domain & 0xFFFF, out->bus, out->device);
    return NVML_SUCCESS;
}

nvmlReturn_t driver_model(const char* symbol, nvmlDevice_t device) {
    Call call(symbol, device);
    return call.status != NVML_SUCCESS ? call.status : NVML_ERROR_NOT_SUPPORTED;  // Windows only
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlInit(void) { return start(__func__); }
nvmlReturn_t nvmlInit_v2(void) { return start(__func__); }
nvmlReturn_t nvmlInitWithFlags(unsigned) { return start(__func__); }

nvmlReturn_t nvmlShutdown(void) {
    Driver& driver = Driver::instance();
    std::lock_guard lock(driver.mutex);
    driver.counts.add(__func__, false);
    return driver.stop();
}

const char* nvmlErrorString(nvmlReturn_t code) {
    switch (code) {
        case NVML_SUCCESS:
            return "Success";
        case NVML_ERROR_UNINITIALIZED:
            return "Uninitialized";
        case NVML_ERROR_INVALID_ARGUMENT:
            return "Invalid Argument";
        case NVML_ERROR_NOT_SUPPORTED:
            return "Not Supported";
        case NVML_ERROR_NO_PERMISSION:
            return "Insufficient Permissions";
        case NVML_ERROR_NOT_FOUND:
            return "Not Found";
        case NVML_ERROR_INSUFFICIENT_SIZE:
            return "Insufficient Size";
        case NVML_ERROR_DRIVER_NOT_LOADED:
            return "Driver Not Loaded";
        case NVML_ERROR_GPU_IS_LOST:
            return "GPU is lost";
        case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
            return "Argument version mismatch";
        default:
            return "Unknown Error";
    }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* out, unsigned length) {
    return version_text(__func__, "driver", out, length);
}
nvmlReturn_t nvmlSystemGetNVMLVersion(char* out, unsigned length) {
    return version_text(__func__, "nvml", out, length);
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int* out) {
    Call call(__func__);
    if (call.status != NVML_SUCCESS) return call.status;
    return out ? give_number(call.driver.recording->header()["cuda"], out)
               : call.fault(NVML_ERROR_INVALID_ARGUMENT);
}
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* out) {
    Call call(__func__);
    if (call.status != NVML_SUCCESS) return call.status;
    return out ? give_number(call.driver.recording->header()["cuda"], out)
               : call.fault(NVML_ERROR_INVALID_ARGUMENT);
}

nvmlReturn_t nvmlDeviceGetCount(unsigned* out) { return count(__func__, out); }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* out) { return count(__func__, out); }
nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* out) {
    return by_index(__func__, index, out);
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* out) {
    return by_index(__func__, index, out);
}
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* out) {
    return by_member(__func__, "uuid", uuid, out);
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* id, nvmlDevice_t* out) {
    return by_member(__func__, "pci_bus_id", id, out);
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* id, nvmlDevice_t* out) {
    return by_member(__func__, "pci_bus_id", id, out);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* out) {
    Call call(__func__, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    *out = static_cast<unsigned>(call.device.mig >= 0 ? call.device.mig : call.device.gpu);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* out, unsigned length) {
    return fact_text(__func__, device, "name", out, length);
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* out, unsigned length) {
    return fact_text(__func__, device, "uuid", out, length);
}
nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char* out, unsigned length) {
    return fact_text(__func__, device, "serial", out, length);
}
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned* out) {
    return read_fact(__func__, device, "minor", out);
}
nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t* out) {
    return read_fact(__func__, device, "architecture", out);
}
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t* out) {
    return read_fact(__func__, device, "persistence_mode", out);
}
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor) {
    Call call(__func__, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!major || !minor) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    auto text = call.facts()["capability"].string();
    if (!text || std::sscanf(text->c_str(), "%d.%d", major, minor) != 2)
        return NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t* out) {
    return pci_info(__func__, device, out);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t* out) {
    return pci_info(__func__, device, out);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* out) {
    return pci_info(__func__, device, out);
}
nvmlReturn_t nvmlDeviceGetDriverModel(nvmlDevice_t device, nvmlDriverModel_t*, nvmlDriverModel_t*) {
    return driver_model(__func__, device);
}
nvmlReturn_t nvmlDeviceGetDriverModel_v2(nvmlDevice_t device, nvmlDriverModel_t*,
                                         nvmlDriverModel_t*) {
    return driver_model(__func__, device);
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending) {
    nvmlReturn_t code = read_fact(__func__, device, "mig_mode", current);
    if (code == NVML_SUCCESS && pending) *pending = *current;
    return code;
}
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned* out) {
    Call call(__func__, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    if (!call.facts()["mig_mode"].boolean()) return NVML_ERROR_NOT_SUPPORTED;
    *out = 7;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index,
                                                 nvmlDevice_t* out) {
    Call call(__func__, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    if (index >= instances(call).size()) return NVML_ERROR_NOT_FOUND;
    *out = call.driver.handle(call.device.gpu, static_cast<int>(index));
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t device, nvmlDevice_t* out) {
    Call call(__func__, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out || call.device.mig < 0) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    *out = call.driver.handle(call.device.gpu);
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned* out) {
    Call call(__func__, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    *out = call.device.mig >= 0 ? 1 : 0;
    return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned* out) {
    return instance_number(__func__, device, "gpu_instance", out);
}
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned* out) {
    return instance_number(__func__, device, "compute_instance", out);
}

}  // extern "C"
