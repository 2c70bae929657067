// SPDX-License-Identifier: Apache-2.0
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include "support/nvml_replay/processes.h"

namespace saturate::nvml_replay {

namespace {

std::size_t stride(const Driver& driver, ProcessLayout layout) {
    if (layout == ProcessLayout::v1) return sizeof(nvmlProcessInfo_v1_t);
    if (layout == ProcessLayout::v2) return sizeof(nvmlProcessInfo_v2_t);
    auto given = driver.recording->header()["library"]["process_stride"].integer();
    return given == 32 ? sizeof(nvmlProcessDetail_v1_t) : sizeof(nvmlProcessInfo_v2_t);
}

void write_entry(const Json& entry, std::size_t bytes, unsigned char* out) {
    nvmlProcessDetail_v1_t process;
    poison(&process);
    give_number(entry["pid"], &process.pid);
    constexpr auto kUnknown = static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE);
    if (give_number(entry["used_bytes"], &process.usedGpuMemory) != NVML_SUCCESS)
        process.usedGpuMemory = kUnknown;
    if (give_number(entry["gpu_instance"], &process.gpuInstanceId) != NVML_SUCCESS)
        process.gpuInstanceId = 0xFFFFFFFF;
    if (give_number(entry["compute_instance"], &process.computeInstanceId) != NVML_SUCCESS)
        process.computeInstanceId = 0xFFFFFFFF;
    process.usedGpuCcProtectedMemory = 0;
    std::memcpy(out, &process, bytes);  // each layout is a prefix of the longest
}

}  // namespace

nvmlReturn_t read_processes(const char* symbol, nvmlDevice_t device, const char* name,
                            ProcessLayout layout, unsigned* count, void* out) {
    Call call(symbol, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!count || (*count > 0 && !out)) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    const Answer* answer = call.answer(name);
    if (!answer) return NVML_ERROR_NOT_SUPPORTED;
    if (answer->rc != 0) return static_cast<nvmlReturn_t>(answer->rc);
    Json::Array entries = answer->value().items();
    auto grow = call.driver.recording->header()["library"]["grow_processes"].integer().value_or(0);
    unsigned room = *count;
    if (room > 0) {  // more processes than announced before
        for (std::int64_t i = 0; i < grow; ++i)
            entries.push_back(Json::object({{"pid", 900000 + i}, {"used_bytes", 1 << 20}}));
    }
    *count = static_cast<unsigned>(entries.size());
    std::size_t bytes = stride(call.driver, layout);
    if (room > 0) std::memset(out, kPoison, room * bytes);
    if (entries.size() > room) return NVML_ERROR_INSUFFICIENT_SIZE;
    auto* place = static_cast<unsigned char*>(out);
    for (const Json& entry : entries) {
        write_entry(entry, bytes, place);
        place += bytes;
    }
    return NVML_SUCCESS;
}

}  // namespace saturate::nvml_replay

using namespace saturate::nvml_replay;

#define PROCESSES(name)                                                                \
    nvmlReturn_t nvmlDeviceGet##name(nvmlDevice_t device, unsigned* count,             \
                                     nvmlProcessInfo_v1_t* out) {                      \
        return read_processes(__func__, device, #name, ProcessLayout::v1, count, out); \
    }                                                                                  \
    nvmlReturn_t nvmlDeviceGet##name##_v2(nvmlDevice_t device, unsigned* count,        \
                                          nvmlProcessInfo_v2_t* out) {                 \
        return read_processes(__func__, device, #name, ProcessLayout::v2, count, out); \
    }

extern "C" {
PROCESSES(ComputeRunningProcesses)
PROCESSES(GraphicsRunningProcesses)
PROCESSES(MPSComputeRunningProcesses)
}
