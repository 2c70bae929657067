// SPDX-License-Identifier: Apache-2.0
// From argv to a verb's function and from whatever it throws to an exit code. Both programs use it.
#pragma once

#include <span>
#include <string_view>

#include "arguments.h"

namespace saturate {

struct Handler {
    std::string_view verb;
    int (*run)(const Arguments&);
};

int dispatch(int argc, char** argv, Program self, std::span<const Handler> handlers);

}  // namespace saturate
