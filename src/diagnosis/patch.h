// SPDX-License-Identifier: Apache-2.0
// Edits a call in the user's source, as the shim recorded it (python.json, "call"), and returns a
// unified diff. Uses only the recorded lines, so it also works on another machine.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace saturate {

struct KeywordChange {
    std::string name;
    std::string value;  // as Python source text
};

// Sets keywords of the call. Returns "" if that cannot be done mechanically: no call was recorded,
// or *args or **kwargs may already hold the keyword.
[[nodiscard]] std::string keyword_patch(const Json& site, const Json& call,
                                        const std::vector<KeywordChange>& changes);

}  // namespace saturate
