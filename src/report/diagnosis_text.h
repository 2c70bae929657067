// SPDX-License-Identifier: Apache-2.0
// What diagnose prints for people.
#pragma once

#include <string>

#include "diagnosis/diagnosis.h"

namespace saturate {

struct DiagnoseView {
    std::size_t most = 5;  // findings
    bool everything = false;
    // The verdict, and of a run without a GPU's own count the bar: run shows them in its own way.
    bool with_answer = true;
};

[[nodiscard]] std::string diagnosis_text(const Diagnosis& diagnosis, const DiagnoseView& view);
// What changed from one to the other, and whether the first one's prediction held.
[[nodiscard]] std::string comparison_text(const Diagnosis& before, const Diagnosis& after);
[[nodiscard]] Json comparison_json(const Diagnosis& before, const Diagnosis& after);
// How to record a good trace.
[[nodiscard]] std::string how_text();

}  // namespace saturate
