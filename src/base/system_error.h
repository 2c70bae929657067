// SPDX-License-Identifier: Apache-2.0
// Describes an error of the system at an unexpected place: a name too long, a loop of links, an
// unreadable folder, too many threads.
#pragma once

#include <system_error>

#include "base/error.h"

namespace saturate {

[[nodiscard]] Problem system_problem(const std::system_error& error);
// True if the user can fix it (a path); false for the machine (space, limits).
[[nodiscard]] bool is_users(const std::system_error& error);

}  // namespace saturate
