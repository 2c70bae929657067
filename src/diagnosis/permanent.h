// SPDX-License-Identifier: Apache-2.0
// Turns the changes that `run --apply` made for one run into permanent edits of the user's script.
// Uses only what the shim recorded (python.json), so it also works on another machine.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace saturate {

struct PermanentEdit {
    std::vector<std::string> names;  // names of the changes, such as "num_workers"
    std::string where;               // "train.py:33 (main)"; empty if anywhere before the loop
    std::string line;                // "DataLoader(..., num_workers=2)"
    std::string patch;               // a unified diff; empty if the edit is not mechanical
};

// Returns one edit per place, for the changes in force at the end of the run: neither refused nor
// taken back.
[[nodiscard]] std::vector<PermanentEdit> permanent_edits(const Json& python);

}  // namespace saturate
