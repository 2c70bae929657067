// SPDX-License-Identifier: Apache-2.0
// Calls the function of the verb in argv and turns exceptions into exit codes, in both programs.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "arguments.h"

namespace saturate {

struct Handler {
    std::string_view verb;
    int (*run)(const Arguments&);
};

// Returns the folders where the engine's program may be, with libsaturate_cuda.so next to it.
[[nodiscard]] std::vector<std::filesystem::path> engine_folders();

int dispatch(int argc, char** argv, Program self, std::span<const Handler> handlers);

}  // namespace saturate
