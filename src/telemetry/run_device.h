// SPDX-License-Identifier: Apache-2.0
// Reads how busy a device is from the run record of `train` or `run` while it is being written, for
// devices whose driver does not report it. Used from one thread.
#pragma once

#include <filesystem>
#include <memory>

#include "base/device.h"

namespace saturate {

// Returns a reader of one device. Its utilisation is the share of step time that the job counted as
// busy since the previous reading; unknown if there was no step or the job does not count it. The
// folder may appear later. Throws UserError if the folder exists and is not a run record.
[[nodiscard]] std::unique_ptr<DeviceReader> open_run_device(const std::filesystem::path& folder);

}  // namespace saturate
