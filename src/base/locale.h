// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace saturate {

// The locale of messages as the C library chooses it: the first of LC_ALL, LC_MESSAGES and LANG
// that is set and not empty ("zh_CN.UTF-8"); empty: none.
[[nodiscard]] std::string message_locale();

}  // namespace saturate
