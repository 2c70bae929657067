// SPDX-License-Identifier: Apache-2.0
// A user's own model from Python: a TorchScript file whose forward takes the fields of a batch and
// returns the loss. Metric: the mean loss over the validation part.
#pragma once

#include <filesystem>

#include "workloads/job_data.h"

namespace saturate {

// Throws UserError if the file is not TorchScript or has no parameters to train.
[[nodiscard]] std::unique_ptr<Job> scripted_job(const std::filesystem::path& file, JobData data);

}  // namespace saturate
