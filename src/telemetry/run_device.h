// SPDX-License-Identifier: Apache-2.0
// A device as the job that uses it counts it: where no driver tells how busy it is, the run record
// of `train` or `run` does, while it is being written. One thread.
#pragma once

#include <filesystem>
#include <memory>

#include "base/device.h"

namespace saturate {

// One device, whose utilisation is the share of step time that the job counted as busy since the
// reading before. Unknown while no step came, and where the job does not count it. The folder may
// come later than the reader. Throws UserError when it is there and no run record.
[[nodiscard]] std::unique_ptr<DeviceReader> open_run_device(const std::filesystem::path& folder);

}  // namespace saturate
