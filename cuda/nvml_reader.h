// SPDX-License-Identifier: Apache-2.0
// Turns NVML's answers into samples: chooses the call for each value and its fallback, and stops
// asking calls that are not supported. Only for cuda/nvml*.cpp.
#pragma once

#include <functional>
#include <memory>

#include "cuda/nvml_calls.h"

namespace saturate {

// `now` returns the steady time of the samples.
[[nodiscard]] std::unique_ptr<DeviceReader> make_nvml_reader(std::unique_ptr<NvmlCalls> calls,
                                                             std::function<std::int64_t()> now,
                                                             std::int64_t wall_us_at_start);
[[nodiscard]] GpuDriver nvml_driver(NvmlCalls& calls);

// A cumulative counter that may wrap. add() returns the total since the first value.
class WrappingCounter {
  public:
    // `narrow`: the driver says that the counter has 32 bits.
    std::uint64_t add(std::uint64_t raw, bool narrow);

  private:
    std::optional<std::uint64_t> last_;
    std::uint64_t total_ = 0;
};

}  // namespace saturate
