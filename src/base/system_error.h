// SPDX-License-Identifier: Apache-2.0
// What the system refused and nobody expected there: a name that is too long, a loop of links, a
// folder that may not be read, one thread more than a limit allows.
#pragma once

#include <system_error>

#include "base/error.h"

namespace saturate {

[[nodiscard]] Problem system_problem(const std::system_error& error);
// Whether it is for the user to mend (a path) or the machine's (room, limits).
[[nodiscard]] bool is_users(const std::system_error& error);

}  // namespace saturate
