// SPDX-License-Identifier: Apache-2.0
// This user's folder for data that can be made again: trials, graphs, listings, samples, LibTorch.
// Some of it is executed, so nobody else may be able to write there. tools/bootstrap and
// cmake/cache.cmake choose the same folder.
#pragma once

#include <sys/types.h>

#include <filesystem>

namespace saturate {

// Returns the first of these folders that is this user's own: $SATURATE_CACHE,
// $XDG_CACHE_HOME/saturate, ~/.cache/saturate (the account's home if HOME is not set),
// saturate-<uid> in the folder for temporary files. Otherwise a folder that ends with this process.
// Makes a missing folder, readable by this user only.
[[nodiscard]] std::filesystem::path user_cache_folder();

// True if `user` can trust the content of the folder: it belongs to them or to root, and nobody
// else may write to it. For a missing folder, the nearest existing parent is checked.
[[nodiscard]] bool is_own_folder(const std::filesystem::path& folder, uid_t user);

}  // namespace saturate
