// SPDX-License-Identifier: Apache-2.0
// What `saturate doctor` says of a machine: a table, what is missing with its cost, and the same as
// JSON. Pure functions of the facts, so that any machine can be described in a test.
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
    bool has_cuda_part = false;  // libsaturate_cuda.so lies beside the engine
    bool is_wheel = false;       // the engine came as a wheel: LibTorch is the environment's torch
};

// A part that is not there or is short, and what that costs.
struct Missing {
    std::string what;
    std::string costs;
};

[[nodiscard]] std::vector<Missing> missing_parts(const DoctorFacts& facts);
[[nodiscard]] std::string doctor_text(const DoctorFacts& facts, bool bold_headings);
[[nodiscard]] Json doctor_json(const DoctorFacts& facts);

}  // namespace saturate
