// SPDX-License-Identifier: Apache-2.0
// Exports the readings that every recent driver has.
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <algorithm>

#include "support/nvml_replay/driver.h"
#include "support/nvml_replay/memory.h"

using namespace saturate;
using namespace saturate::nvml_replay;

namespace {

// The capacity of the driver's ring of samples.
constexpr unsigned kRing = 120;

// Calls `each` with the samples that a reader has not seen yet. No sample is later than its line.
template <typename Each>
void each_sample(const Call& call, const Question& question, unsigned long long last_seen,
                 const Each& each) {
    for (const Answer& answer : call.driver.recording->all(question)) {
        if (answer.t > call.driver.now()) break;
        if (call.driver.stamp(answer.t) <= last_seen) continue;
        Json value = answer.value();
        for (const Json& item : value.items()) each(item);
    }
}

nvmlReturn_t two_numbers(const char* symbol, nvmlDevice_t device, const char* name, unsigned* out,
                         unsigned* period_us) {
    nvmlReturn_t code = read_number(symbol, device, name, out);
    if (code == NVML_SUCCESS && period_us) *period_us = 166666;
    return code;
}

}  // namespace

// Defines a getter of one number.
#define NUMBER(name, type)                                             \
    nvmlReturn_t nvmlDeviceGet##name(nvmlDevice_t device, type* out) { \
        return read_number(__func__, device, #name, out);              \
    }
#define NUMBER_BY(name, selector, type)                                                   \
    nvmlReturn_t nvmlDeviceGet##name(nvmlDevice_t device, selector arg, type* out) {      \
        return read_number(__func__, device, #name, out, static_cast<std::int64_t>(arg)); \
    }

extern "C" {

NUMBER(PowerUsage, unsigned)
NUMBER(EnforcedPowerLimit, unsigned)
NUMBER(PowerManagementLimit, unsigned)
NUMBER(PowerManagementDefaultLimit, unsigned)
NUMBER(TotalEnergyConsumption, unsigned long long)
NUMBER(PerformanceState, nvmlPstates_t)
NUMBER(FanSpeed, unsigned)
NUMBER(ComputeMode, nvmlComputeMode_t)
NUMBER(DisplayMode, nvmlEnableState_t)
NUMBER(DisplayActive, nvmlEnableState_t)
NUMBER(CurrPcieLinkGeneration, unsigned)
NUMBER(CurrPcieLinkWidth, unsigned)
NUMBER(MaxPcieLinkGeneration, unsigned)
NUMBER(MaxPcieLinkWidth, unsigned)
NUMBER(MemoryBusWidth, unsigned)
NUMBER(NumGpuCores, unsigned)
NUMBER_BY(Temperature, nvmlTemperatureSensors_t, unsigned)
NUMBER_BY(ClockInfo, nvmlClockType_t, unsigned)
NUMBER_BY(MaxClockInfo, nvmlClockType_t, unsigned)
NUMBER_BY(PcieThroughput, nvmlPcieUtilCounter_t, unsigned)

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned* out,
                                             unsigned* period_us) {
    return two_numbers(__func__, device, "EncoderUtilization", out, period_us);
}
nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned* out,
                                             unsigned* period_us) {
    return two_numbers(__func__, device, "DecoderUtilization", out, period_us);
}
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                       unsigned long long* out) {
    return read_number(__func__, device, "ClocksEventReasons", out);
}
nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t kind,
                                         nvmlEccCounterType_t counter, unsigned long long* out) {
    if (counter != NVML_VOLATILE_ECC) return NVML_ERROR_NOT_SUPPORTED;
    return read_number(__func__, device, "TotalEccErrors", out, static_cast<std::int64_t>(kind));
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* out) {
    Call call(__func__, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    if (call.device.mig >= 0) return NVML_ERROR_NOT_SUPPORTED;
    call.driver.pulse(device, __func__, -1);
    poison(out);
    const Answer* answer = call.answer("UtilizationRates");
    if (!answer) return NVML_ERROR_NOT_SUPPORTED;
    if (answer->rc != 0) return static_cast<nvmlReturn_t>(answer->rc);
    Json value = answer->value();
    give_number(value["gpu"], &out->gpu);
    give_number(value["memory"], &out->memory);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* out) {
    Call call(__func__, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    call.driver.pulse(device, __func__, -1);
    poison(out);
    Memory memory;
    nvmlReturn_t code = read_memory(call, memory);
    if (code != NVML_SUCCESS) return code;
    out->total = memory.total;
    out->free = memory.free;
    out->used = memory.used + memory.reserved;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t* out) {
    Call call(__func__, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!out) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    poison(out);
    const Answer* answer = call.answer("BAR1MemoryInfo");
    if (!answer) return NVML_ERROR_NOT_SUPPORTED;
    if (answer->rc != 0) return static_cast<nvmlReturn_t>(answer->rc);
    Json value = answer->value();
    give_number(value["total"], &out->bar1Total);
    give_number(value["free"], &out->bar1Free);
    give_number(value["used"], &out->bar1Used);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
    Call call(__func__, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!values || count <= 0) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    call.driver.pulse(device, __func__, values[0].fieldId);
    for (int i = 0; i < count; ++i) {
        nvmlFieldValue_t& out = values[i];
        unsigned field = out.fieldId, scope = out.scopeId;
        poison(&out);
        out.fieldId = field;
        out.scopeId = scope;
        const Answer* answer = call.answer("FieldValue", field, scope);
        out.nvmlReturn = answer ? static_cast<nvmlReturn_t>(answer->rc) : NVML_ERROR_NOT_SUPPORTED;
        if (out.nvmlReturn != NVML_SUCCESS) continue;
        out.timestamp = static_cast<long long>(call.driver.start_us) +
                        static_cast<long long>(call.driver.now() * 1e6);
        out.latencyUsec = 0;
        out.valueType = static_cast<nvmlValueType_t>(answer->type);
        out.value = typed_value(answer->value(), answer->type);
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
                                  unsigned long long last_seen, nvmlValueType_t* value_type,
                                  unsigned* count, nvmlSample_t* samples) {
    Call call(__func__, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!value_type || !count) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    const Answer* now = call.answer("Samples", type);
    if (!now) return NVML_ERROR_NOT_SUPPORTED;
    if (now->rc != 0) return static_cast<nvmlReturn_t>(now->rc);
    *value_type = static_cast<nvmlValueType_t>(now->type);
    if (!samples) {
        *count = kRing;
        return NVML_SUCCESS;
    }
    poison(samples, *count);
    std::vector<nvmlSample_t> fresh;
    Question question{.gpu = call.device.gpu, .call = "Samples", .arg = type};
    each_sample(call, question, last_seen, [&](const Json& item) {
        double t = item.items().at(0).number().value_or(0);
        if (t > call.driver.now() || call.driver.stamp(t) <= last_seen) return;
        fresh.push_back({call.driver.stamp(t), typed_value(item.items().at(1), now->type)});
    });
    if (fresh.empty()) return NVML_ERROR_NOT_FOUND;
    std::size_t given = std::min<std::size_t>({fresh.size(), *count, kRing});
    std::copy(fresh.end() - static_cast<std::ptrdiff_t>(given), fresh.end(), samples);
    *count = static_cast<unsigned>(given);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t* out, unsigned* count,
                                             unsigned long long last_seen) {
    Call call(__func__, device);
    if (call.status != NVML_SUCCESS) return call.status;
    if (!count) return call.fault(NVML_ERROR_INVALID_ARGUMENT);
    const Answer* now = call.answer("ProcessUtilization");
    if (!now) return NVML_ERROR_NOT_SUPPORTED;
    if (now->rc != 0) return static_cast<nvmlReturn_t>(now->rc);
    std::vector<nvmlProcessUtilizationSample_t> fresh;
    Question question{.gpu = call.device.gpu, .call = "ProcessUtilization"};
    each_sample(call, question, last_seen, [&](const Json& item) {
        double t = item["time"].number().value_or(0);
        if (t > call.driver.now() || call.driver.stamp(t) <= last_seen) return;
        nvmlProcessUtilizationSample_t sample;
        poison(&sample);
        sample.timeStamp = call.driver.stamp(t);
        give_number(item["pid"], &sample.pid);
        sample.smUtil = static_cast<unsigned>(item["sm"].integer().value_or(0));
        sample.memUtil = static_cast<unsigned>(item["mem"].integer().value_or(0));
        sample.encUtil = static_cast<unsigned>(item["enc"].integer().value_or(0));
        sample.decUtil = static_cast<unsigned>(item["dec"].integer().value_or(0));
        fresh.push_back(sample);
    });
    if (fresh.empty()) return NVML_ERROR_NOT_FOUND;
    unsigned room = *count;
    *count = static_cast<unsigned>(fresh.size());
    if (!out || room < fresh.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
    poison(out, room);
    std::copy(fresh.begin(), fresh.end(), out);
    return NVML_SUCCESS;
}

}  // extern "C"
