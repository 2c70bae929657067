// SPDX-License-Identifier: Apache-2.0
// A user's own model out of Python: a TorchScript file whose forward takes the fields of a batch
// and gives the loss. Metric: the mean loss of the validation part.
#pragma once

#include <filesystem>

#include "workloads/job_data.h"

namespace saturate {

// Throws UserError when the file is no TorchScript, or holds nothing to train.
[[nodiscard]] std::unique_ptr<Job> scripted_job(const std::filesystem::path& file, JobData data);

}  // namespace saturate
