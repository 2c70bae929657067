// SPDX-License-Identifier: Apache-2.0
// What every record begins with, whichever verb writes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/device.h"
#include "telemetry/record.h"

namespace saturate {

// `machine` of every record: {gpus: [{gpu, name, uuid, memory_total_bytes, mig}], cpu,
// cores_usable, memory_bytes}. `gpus` are those that are watched or trained on.
[[nodiscard]] Json recorded_machine(const std::vector<GpuIdentity>& gpus);

// A run of this process that starts now in this folder; `version` is the program's. `machine` is
// left to be filled.
[[nodiscard]] RunInfo started_run(std::string kind, std::vector<std::string> command,
                                  std::string_view version);

}  // namespace saturate
