// SPDX-License-Identifier: Apache-2.0
// Sends broken, hostile and incomplete requests to `serve`.
#pragma once

#include <filesystem>
#include <string>

namespace saturate {

// Serves `folder`/runs for `seconds`, next to a secret file that no reply may contain. Returns ""
// or what failed: a reply with the secret, a changed file, or a server that died, grew or does not
// reply any more.
std::string fuzz_serve(const std::string& binary, const std::filesystem::path& folder,
                       double seconds);

}  // namespace saturate
