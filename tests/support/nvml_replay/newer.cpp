// SPDX-License-Identifier: Apache-2.0
// Exports the functions that drivers have since R510. The old variant is built without this file.
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <algorithm>
#include <cmath>
#include <limits>
#include <list>

#include "support/nvml_replay/driver.h"
#include "support/nvml_replay/memory.h"
#include "support/nvml_replay/processes.h"

using namespace saturate;
using namespace saturate::nvml_replay;

struct nvmlGpmSample_st {
    int gpu = -1;
    double t = 0;
};

namespace {

// GPM counters are refreshed every 100 ms, so closer samples hold the same values. A little less,
// as a margin for the rounding of time steps.
constexpr double kGpmRefreshSeconds = 0.099;

// Protected by the driver's lock, like everything else.
std::list<nvmlGpmSample_st>& gpm_samples() {
    static std::list<nvmlGpmSample_st> samples;
    return samples;
}

nvmlGpmSample_st* known(nvmlGpmSample_t handle) {
    for (nvmlGpmSample_st& sample : gpm_samples()) {
        if (&sample == handle) return &sample;
    }
    return nullptr;
}

bool has_gpm(const Call& call) {
    for (int id = 1; id < NVML_GPM_METRIC_MAX; ++id) {
        if (!call.driver.recording->all({.gpu = call.device.gpu, .call = "GpmMetric", .arg = id})
                 .empty())
            return true;
    }
    return false;
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* out) {
    Call call(__func__, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    if (out->version != nvmlMemory_v2) return call.fault(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    call.driver.pulse(device, __func__, -1);
    poison(out);
    out->version = nvmlMemory_v2;
    Memory memory;
    nvmlReturn_t code = read_memory(call, memory);
    if (code != NVML_SUCCESS) return code;
    if (!memory.has_reserved) return NVML_ERROR_NOT_SUPPORTED;
    out->total = memory.total;
    out->reserved = memory.reserved;
    out->free = memory.free;
    out->used = memory.used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t* out) {
    Call call(__func__, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    if (out->version != nvmlTemperature_v1) return call.fault(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    call.driver.pulse(device, __func__, out->sensorType);
    out->temperature = static_cast<int>(0xA5A5A5A5);
    const Answer* answer = call.answer("Temperature", out->sensorType);
    if (!answer) return NVML_ERROR_NOT_SUPPORTED;
    if (answer->rc != 0) return static_cast<nvmlReturn_t>(answer->rc);
    return give_number(answer->value(), &out->temperature);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long* out) {
    return read_number(__func__, device, "ClocksEventReasons", out);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                     nvmlProcessInfo_t* out) {
    return read_processes(__func__, device, "ComputeRunningProcesses", ProcessLayout::by_recording,
                          count, out);
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                      nvmlProcessInfo_t* out) {
    return read_processes(__func__, device, "GraphicsRunningProcesses", ProcessLayout::by_recording,
                          count, out);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count,
                                                        nvmlProcessInfo_t* out) {
    return read_processes(__func__, device, "MPSComputeRunningProcesses",
                          ProcessLayout::by_recording, count, out);
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t* out) {
    Call call(__func__, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    if (out->version != NVML_GPM_SUPPORT_VERSION)
        return call.fault(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    out->isSupportedDevice = has_gpm(call) ? 1 : 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t* out) {
    Call call(__func__);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    *out = &gpm_samples().emplace_back();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
    Call call(__func__);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!known(sample)) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    gpm_samples().remove_if([&](const nvmlGpmSample_st& one) { return &one == sample; });
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t handle) {
    Call call(__func__, device);
    if (call.status != NVML_SUCCESS) return call.status;
    nvmlGpmSample_st* sample = known(handle);
    if (!sample) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    if (!has_gpm(call)) return NVML_ERROR_NOT_SUPPORTED;
    *sample = {call.device.gpu, call.driver.now()};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t* get) {
    Call call(__func__);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!get) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    if (get->version != NVML_GPM_METRICS_GET_VERSION)
        return call.fault(NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    nvmlGpmSample_st *first = known(get->sample1), *second = known(get->sample2);
    if (!first || !second || first == second || first->gpu < 0 || first->gpu != second->gpu ||
        get->numMetrics == 0 || get->numMetrics >= NVML_GPM_METRIC_MAX)
        return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    for (unsigned i = 0; i < get->numMetrics; ++i) {
        nvmlGpmMetric_t& metric = get->metrics[i];
        unsigned id = metric.metricId;
        poison(&metric);
        metric.metricId = id;
        metric.metricInfo = {nullptr, nullptr, nullptr};
        const Answer* answer = call.driver.recording->at(
            {.gpu = second->gpu, .call = "GpmMetric", .arg = id}, second->t);
        metric.nvmlReturn =
            answer ? static_cast<nvmlReturn_t>(answer->rc) : NVML_ERROR_NOT_SUPPORTED;
        if (metric.nvmlReturn != NVML_SUCCESS) continue;
        bool moved = second->t - first->t >= kGpmRefreshSeconds;
        metric.value =
            moved ? answer->value().number().value_or(0) : std::numeric_limits<double>::quiet_NaN();
    }
    return NVML_SUCCESS;
}

}  // extern "C"
