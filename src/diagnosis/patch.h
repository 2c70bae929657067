// SPDX-License-Identifier: Apache-2.0
// A call in the user's source, as the shim recorded it (python.json, "call"), edited into a unified
// diff. Works on the recorded lines, so that it can be made on another machine.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace saturate {

struct KeywordChange {
    std::string name;
    std::string value;  // as Python text
};

// Sets keywords of the call. Empty where that is not mechanical: no call recorded, or *args and
// **kwargs may hold the keyword already.
[[nodiscard]] std::string keyword_patch(const Json& site, const Json& call,
                                        const std::vector<KeywordChange>& changes);

}  // namespace saturate
