// SPDX-License-Identifier: Apache-2.0
// What `run --apply` changed for one run, as edits of the user's script that make it last. From
// what the shim recorded (python.json), so that it can be made on another machine.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace saturate {

struct PermanentEdit {
    std::vector<std::string> names;  // the changes that it stands for: "num_workers"
    std::string where;               // "train.py:33 (main)"; empty: anywhere before the loop
    std::string line;                // "DataLoader(..., num_workers=2)"
    std::string patch;               // a unified diff; empty where the edit is not mechanical
};

// One per place, of the changes that are in force at the end: not refused, not taken back.
[[nodiscard]] std::vector<PermanentEdit> permanent_edits(const Json& python);

}  // namespace saturate
