// SPDX-License-Identifier: Apache-2.0
// Writes process lists in each layout that drivers have used.
#pragma once

#include "support/nvml_replay/driver.h"

namespace saturate::nvml_replay {

enum class ProcessLayout { v1, v2, by_recording };

nvmlReturn_t read_processes(const char* symbol, nvmlDevice_t device, const char* name,
                            ProcessLayout layout, unsigned* count, void* out);

}  // namespace saturate::nvml_replay
