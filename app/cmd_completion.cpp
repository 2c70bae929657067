// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "arguments.h"
#include "base/error.h"
#include "base/text.h"
#include "commands.h"
#include "exit_code.h"

namespace saturate {

int cmd_completion(const Arguments& arguments) {
    const std::vector<std::string>& shells = arguments.operands;
    if (shells.size() != 1 || (shells[0] != "bash" && shells[0] != "zsh")) {
        throw UserError({.found = shells.empty()
                                      ? "no shell is named"
                                      : fmt::format("shell {}", in_quotes(shells.back())),
                         .expected = "one of bash, zsh",
                         .fix = "saturate completion bash"});
    }
    fmt::print("{}", completion_script(shells[0]));
    return kDone;
}

}  // namespace saturate
