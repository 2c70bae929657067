// SPDX-License-Identifier: Apache-2.0
// Writes NVML's answers to a file and reads them back (docs/nvml-recording.md).
// Only for cuda/nvml*.cpp.
#pragma once

#include "cuda/nvml.h"
#include "cuda/nvml_calls.h"

namespace saturate {

// Passes every call on and records its answer.
[[nodiscard]] std::unique_ptr<NvmlCalls> record_nvml(std::unique_ptr<NvmlCalls> calls,
                                                     NvmlRecorder& recorder);

struct RecordedNvml {
    std::unique_ptr<NvmlCalls> calls;
    std::int64_t started_wall_us = 0;
    double seconds = 0;
    std::vector<std::string> notes;
};
// Answers from a file. `now` returns the steady time; the recording starts at the first value that
// it returns. Throws UserError.
[[nodiscard]] RecordedNvml read_nvml_recording(const std::filesystem::path& path,
                                               std::function<std::int64_t()> now);

}  // namespace saturate
