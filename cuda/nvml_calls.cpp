// SPDX-License-Identifier: Apache-2.0
#include "cuda/nvml_calls.h"

namespace saturate {

std::string_view nvml_number_name(NvmlNumber what) {
    constexpr std::string_view kNames[] = {
        "PowerUsage", "EnforcedPowerLimit", "TotalEnergyConsumption", "Temperature",
        "ClockInfo",  "MaxClockInfo",       "PerformanceState",       "ClocksEventReasons"};
    return kNames[static_cast<int>(what)];
}

bool nvml_number_has_arg(NvmlNumber what) {
    return what == NvmlNumber::temperature || what == NvmlNumber::clock ||
           what == NvmlNumber::max_clock;
}

std::string_view nvml_process_call(GpuProcessKind kind) {
    constexpr std::string_view kNames[] = {"ComputeRunningProcesses", "GraphicsRunningProcesses",
                                           "MPSComputeRunningProcesses"};
    return kNames[static_cast<int>(kind)];
}

}  // namespace saturate
