// SPDX-License-Identifier: Apache-2.0
// Tables for the two forecasting jobs: hourly rows of a time and 16 columns of numbers, the last
// one to be forecast. Used by make_data.cpp.
#pragma once

#include <cstdint>
#include <string>

namespace saturate {

// A load that follows the hour, the week, the weather and a pump that switches six hours earlier.
[[nodiscard]] std::string load_csv(std::int64_t rows, std::uint64_t seed);
// Fine dust that gathers in still air and is blown away or washed out.
[[nodiscard]] std::string air_quality_csv(std::int64_t rows, std::uint64_t seed);

}  // namespace saturate
