// SPDX-License-Identifier: Apache-2.0
// The output of `saturate doctor`: a table of the machine, the missing parts and what you lose
// without them, and the same as JSON. Pure functions of the facts, so that tests can describe any
// machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "probe/machine.h"
#include "probe/software.h"

namespace saturate {

struct DoctorFacts {
    Machine machine;
    TorchFacts torch;
    std::optional<ToolkitFacts> toolkit;
    bool has_cuda_part = false;  // libsaturate_cuda.so is next to the engine
    bool is_wheel = false;       // the engine is from a wheel and uses the environment's torch
};

// A part that is missing or too small, and what you lose by that.
struct Missing {
    std::string what;
    std::string costs;
};

[[nodiscard]] std::vector<Missing> missing_parts(const DoctorFacts& facts);
[[nodiscard]] std::string doctor_text(const DoctorFacts& facts, bool bold_headings);
[[nodiscard]] Json doctor_json(const DoctorFacts& facts);

}  // namespace saturate
