// SPDX-License-Identifier: Apache-2.0
// Where this user keeps what can be made again: trials, graphs, listings, samples, LibTorch. Some
// of it is executed, so nobody else may be able to write there. tools/bootstrap and
// cmake/cache.cmake choose the same folder.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace saturate {

// The first that is this user's own: $SATURATE_CACHE, $XDG_CACHE_HOME/saturate, ~/.cache/saturate
// (the home of the user's account where HOME is not set), saturate-<uid> among the temporary files.
// Else a folder that ends with this process. It is made, private, where it is not there.
[[nodiscard]] std::filesystem::path user_cache_folder();

// Whether `user` can rely on what is in the folder: it belongs to them or to root, and nobody else
// may write to it; of a folder that is not there yet, the nearest one above that is.
[[nodiscard]] bool is_own_folder(const std::filesystem::path& folder, uid_t user);

}  // namespace saturate
