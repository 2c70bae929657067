// SPDX-License-Identifier: Apache-2.0
// What is wrong with a command that cannot be started, and what to type instead.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace saturate {

// The problem of a command that exec refused with this errno.
[[nodiscard]] Problem why_not_started(const std::vector<std::string>& command, int error);

// Throws ChildNotStarted if the command's first word is no program. For verbs that start the
// command behind another program, whose own error would not say it as well.
void check_can_start(const std::vector<std::string>& command);

}  // namespace saturate
