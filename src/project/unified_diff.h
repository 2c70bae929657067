// SPDX-License-Identifier: Apache-2.0
// Makes a patch of two versions of a file, byte for byte, for `git apply` and `patch -p1`.
#pragma once

#include <string>
#include <string_view>

namespace saturate {

// Returns "" if nothing differs. `file` is relative to the folder that the patch is applied in.
[[nodiscard]] std::string unified_diff(std::string_view file, std::string_view before,
                                       std::string_view after);

}  // namespace saturate
