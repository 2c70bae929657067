// SPDX-License-Identifier: Apache-2.0
// Reads the recorded memory of a GPU or of an instance, for both versions of the NVML call.
#pragma once

#include "support/nvml_replay/driver.h"

namespace saturate::nvml_replay {

struct Memory {
    unsigned long long total = 0, reserved = 0, free = 0, used = 0;
    bool has_reserved = false;
};

inline nvmlReturn_t read_memory(const Call& call, Memory& out) {
    const Answer* answer = call.answer(call.device.mig >= 0 ? "MigDevices" : "MemoryInfo");
    if (!answer) return NVML_ERROR_NOT_SUPPORTED;
    if (answer->rc != 0) return static_cast<nvmlReturn_t>(answer->rc);
    Json value = answer->value();
    if (call.device.mig >= 0) {
        const Json& instance = value.items().at(static_cast<std::size_t>(call.device.mig));
        give_number(instance["memory_total"], &out.total);
        give_number(instance["memory_used"], &out.used);
        out.free = out.total - out.used;
        out.has_reserved = true;
        return NVML_SUCCESS;
    }
    give_number(value["total"], &out.total);
    give_number(value["free"], &out.free);
    give_number(value["used"], &out.used);
    out.has_reserved = give_number(value["reserved"], &out.reserved) == NVML_SUCCESS;
    return NVML_SUCCESS;
}

}  // namespace saturate::nvml_replay
