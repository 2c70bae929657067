// SPDX-License-Identifier: Apache-2.0
// Values of settings by canonical name, in the syntax of `train --set`. Absent settings stay
// unchanged.
#pragma once

#include <map>
#include <string>

namespace saturate {

using Assignment = std::map<std::string, std::string>;

}  // namespace saturate
