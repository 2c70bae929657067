// SPDX-License-Identifier: Apache-2.0
// The page of `diagnose --html`: one file that loads nothing from the network, with the verdict,
// where the time went, the findings, and the timeline of one typical step.
#pragma once

#include <string>

#include "diagnosis/diagnosis.h"
#include "words/words.h"

namespace saturate {

struct PageView {
    std::size_t most = 5;  // findings
    bool everything = false;
    Language language = Language::english;
};

// Draws `trace`, which is null if there is none (a run record, a configuration).
[[nodiscard]] std::string diagnosis_page(const Diagnosis& diagnosis, const Trace* trace,
                                         const PageView& view);

// Returns the trace that the findings are about, or null.
[[nodiscard]] const Trace* trace_to_draw(const Diagnosis& diagnosis,
                                         const std::vector<Trace>& traces);

// Escapes text for HTML. Control characters become U+FFFD.
[[nodiscard]] std::string html_text(std::string_view raw);

}  // namespace saturate
