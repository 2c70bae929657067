// SPDX-License-Identifier: Apache-2.0
// NVML's answers to and from a file (docs/nvml-recording.md). For cuda/nvml*.cpp only.
#pragma once

#include "cuda/nvml.h"
#include "cuda/nvml_calls.h"

namespace saturate {

// Writes every answer down on its way.
[[nodiscard]] std::unique_ptr<NvmlCalls> record_nvml(std::unique_ptr<NvmlCalls> calls,
                                                     NvmlRecorder& recorder);

struct RecordedNvml {
    std::unique_ptr<NvmlCalls> calls;
    std::int64_t started_wall_us = 0;
    double seconds = 0;
    std::vector<std::string> notes;
};
// Answers from a file. `now` is the steady time that its start is laid on. Throws UserError.
[[nodiscard]] RecordedNvml read_nvml_recording(const std::filesystem::path& path,
                                               std::function<std::int64_t()> now);

}  // namespace saturate
