// SPDX-License-Identifier: Apache-2.0
// Two versions of files as a patch that `git apply` and `patch -p1` take, byte for byte.
#pragma once

#include <string>
#include <string_view>

namespace saturate {

// Empty when nothing differs. `file` is relative to the folder in which the patch is applied.
[[nodiscard]] std::string unified_diff(std::string_view file, std::string_view before,
                                       std::string_view after);

}  // namespace saturate
