// SPDX-License-Identifier: Apache-2.0
// The text that `fix` prints: why the job is slow, what to change, what was left alone.
#pragma once

#include <string>

#include "project/fix_answer.h"

namespace saturate {

struct FixTextSettings {
    bool colour = false;
    bool is_broken = true;  // long sentences, into lines; a terminal breaks them at its own width
    bool all = false;       // long lists in full
    bool was_run = false;
    bool on_gpu = true;     // ... on a GPU
    std::string why = {};   // fix_why_text() of the run
    std::string next = {};  // printed instead of the patch: what to do next
};

[[nodiscard]] std::string fix_text(const FixAnswer& answer, const FixTextSettings& settings);

}  // namespace saturate
