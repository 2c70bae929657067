// SPDX-License-Identifier: Apache-2.0
// Values of settings by canonical name, as `train --set` takes them. What is absent is not changed.
#pragma once

#include <map>
#include <string>

namespace saturate {

using Assignment = std::map<std::string, std::string>;

}  // namespace saturate
