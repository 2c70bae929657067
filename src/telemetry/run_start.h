// SPDX-License-Identifier: Apache-2.0
// The first fields of every run record, whichever verb writes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/device.h"
#include "telemetry/record.h"

namespace saturate {

// Returns `machine` of a record: {gpus: [{gpu, name, uuid, memory_total_bytes, mig}], cpu,
// cores_usable, memory_bytes}. `gpus` are the GPUs that are watched or trained on.
[[nodiscard]] Json recorded_machine(const std::vector<GpuIdentity>& gpus);

// Returns the info of a run that this process starts now in the current folder. `version` is that
// of the program. The caller fills `machine`.
[[nodiscard]] RunInfo started_run(std::string kind, std::vector<std::string> command,
                                  std::string_view version);

}  // namespace saturate
