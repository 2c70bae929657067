// SPDX-License-Identifier: Apache-2.0
// Where this user keeps what can be made again: trials, graphs, listings, samples, LibTorch.
// tools/bootstrap and cmake/cache.cmake choose the same folder.
#pragma once

#include <filesystem>

namespace saturate {

// $SATURATE_CACHE, $XDG_CACHE_HOME/saturate, ~/.cache/saturate, or without a home a folder for
// temporary files. It need not be there.
[[nodiscard]] std::filesystem::path user_cache_folder();

}  // namespace saturate
