// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace saturate {

[[nodiscard]] std::string_view saturate_version();  // "0.1.0"

}  // namespace saturate
