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
// A part that is all of what it explains, with the same fix (F02 of F01): one finding to the reader.
[[nodiscard]] bool says_the_same(const Finding& part, const std::vector<Finding>& all);
// Fixes that only count together: one cause hides behind the other. Empty where they do not.
[[nodiscard]] std::string more_than_the_product(const Diagnosis& diagnosis,
                                                const std::vector<Finding>& shown);
// "left out of 5295.2 ms recorded (busy 18.5 %): start-up 3917.3 ms"; empty where nothing is.
[[nodiscard]] std::string left_out_text(const Diagnosis& diagnosis);
// What changed from one to the other, and whether the first one's prediction held.
[[nodiscard]] std::string comparison_text(const Diagnosis& before, const Diagnosis& after);
[[nodiscard]] Json comparison_json(const Diagnosis& before, const Diagnosis& after);
// How to record a good trace.
[[nodiscard]] std::string how_text();

}  // namespace saturate
