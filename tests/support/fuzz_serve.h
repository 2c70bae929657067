// SPDX-License-Identifier: Apache-2.0
// A stream of broken, hostile and half requests against `serve`.
#pragma once

#include <filesystem>
#include <string>

namespace saturate {

// Serves `folder`/runs, with a file beside it that no answer may hold, for so many seconds. Empty,
// or what did not hold: an answer with the secret, a file that changed, a server that died, grew or
// no longer answers.
std::string fuzz_serve(const std::string& binary, const std::filesystem::path& folder,
                       double seconds);

}  // namespace saturate
