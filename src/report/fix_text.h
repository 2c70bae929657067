// SPDX-License-Identifier: Apache-2.0
// What `fix` says to a person: why the job is slow, what to change, what was left alone.
#pragma once

#include <string>

#include "project/fix_answer.h"

namespace saturate {

struct FixTextSettings {
    bool colour = false;
    bool all = false;  // long lists in full
    bool was_run = false;
    bool on_gpu = true;     // ... there
    std::string why = {};   // what was seen in the run
    std::string next = {};  // instead of the patch: what to do with the answer
};

[[nodiscard]] std::string fix_text(const FixAnswer& answer, const FixTextSettings& settings);
// A patch with its removed lines in red and its added ones in green.
[[nodiscard]] std::string diff_text(const std::string& patch, bool colour);

}  // namespace saturate
