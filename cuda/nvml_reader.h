// SPDX-License-Identifier: Apache-2.0
// Turns NVML's answers into samples: which call for which value, what to fall back to, and which
// calls are not worth asking again. For cuda/nvml*.cpp only.
#pragma once

#include <functional>
#include <memory>

#include "cuda/nvml_calls.h"

namespace saturate {

// `now` gives the steady time of the samples.
[[nodiscard]] std::unique_ptr<DeviceReader> make_nvml_reader(std::unique_ptr<NvmlCalls> calls,
                                                             std::function<std::int64_t()> now,
                                                             std::int64_t wall_us_at_start);
[[nodiscard]] GpuDriver nvml_driver(NvmlCalls& calls);

// A cumulative counter that may wrap: gives what was added since the first value.
class WrappingCounter {
  public:
    // `narrow`: the driver says that the counter has 32 bits.
    std::uint64_t add(std::uint64_t raw, bool narrow);

  private:
    std::optional<std::uint64_t> last_;
    std::uint64_t total_ = 0;
};

}  // namespace saturate
