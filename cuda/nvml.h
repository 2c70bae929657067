// SPDX-License-Identifier: Apache-2.0
// What the NVIDIA driver tells about its GPUs. libnvidia-ml.so.1 is loaded at run time and each
// symbol on its own: an old driver loses single facts, a missing one says why.
#pragma once

#include "base/device.h"

namespace saturate {

// Never throws: without a driver the survey says why there is none.
[[nodiscard]] GpuSurvey survey_nvml();

}  // namespace saturate
