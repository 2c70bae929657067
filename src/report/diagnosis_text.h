// SPDX-License-Identifier: Apache-2.0
// The text that `diagnose` prints.
#pragma once

#include <string>
#include <string_view>

#include "diagnosis/diagnosis.h"

namespace saturate {

struct DiagnoseView {
    std::size_t most = 5;  // findings
    bool everything = false;
    // Print the verdict, and the bar of a run without GPU figures. `run` shows them differently.
    bool with_answer = true;
};

[[nodiscard]] std::string diagnosis_text(const Diagnosis& diagnosis, const DiagnoseView& view);
// True if a part covers its whole finding and has the same fix (F02 of F01), so that one of them is
// enough for the reader.
[[nodiscard]] bool says_the_same(const Finding& part, const std::vector<Finding>& all);
// Returns a sentence if the fixes together gain more than one by one, because one cause hides
// another, or "".
[[nodiscard]] std::string more_than_the_product(const Diagnosis& diagnosis,
                                                const std::vector<Finding>& shown);
// Each clause of the answer on its own line.
[[nodiscard]] std::string verdict_lines(std::string_view verdict);
// Returns "left out of 5295.2 ms recorded (busy 18.5 %): start-up 3917.3 ms", or "" if nothing was
// left out.
[[nodiscard]] std::string left_out_text(const Diagnosis& diagnosis);
// Compares two diagnoses and says whether the prediction of the first one held.
[[nodiscard]] std::string comparison_text(const Diagnosis& before, const Diagnosis& after);
[[nodiscard]] Json comparison_json(const Diagnosis& before, const Diagnosis& after);
// Returns instructions for recording a good trace.
[[nodiscard]] std::string how_text();

}  // namespace saturate
