// SPDX-License-Identifier: Apache-2.0
// From argv to a verb's function and from whatever it throws to an exit code. Both programs use it.
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

// Where the engine's program may lie, and libsaturate_cuda.so beside it.
[[nodiscard]] std::vector<std::filesystem::path> engine_folders();

int dispatch(int argc, char** argv, Program self, std::span<const Handler> handlers);

}  // namespace saturate
