// SPDX-License-Identifier: Apache-2.0
// Tables for the two forecasting jobs: hourly rows, 16 columns of numbers after the time, what is
// to be forecast in the last. For make_data.cpp.
#pragma once

#include <cstdint>
#include <string>

namespace saturate {

// A load that follows the hour, the week, the weather and a pump that switches six hours ahead.
[[nodiscard]] std::string load_csv(std::int64_t rows, std::uint64_t seed);
// Fine dust that gathers in still air and is blown or washed away.
[[nodiscard]] std::string air_quality_csv(std::int64_t rows, std::uint64_t seed);

}  // namespace saturate
