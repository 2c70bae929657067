// SPDX-License-Identifier: Apache-2.0
// Writes one typical step of a trace as compact JSON for the page that draws it: columns instead of
// objects, each name once, start times as differences. Used by timeline_html.
#pragma once

#include <cstddef>
#include <string>

#include "diagnosis/timeline.h"
#include "words/words.h"

namespace saturate {

struct StepData {
    std::string json;          // safe inside <script>: contains no "<"
    std::string name;          // "ProfilerStep#5"
    std::size_t events = 0;    // in the JSON
    std::size_t left_out = 0;  // nested too deeply, on minor threads, or beyond the limit
};

inline constexpr std::size_t kDrawnEventsMost = 400'000;

// Returns the step of median length, or the whole window if steps are not marked.
[[nodiscard]] StepData typical_step(const Timeline& timeline,
                                    Language language = Language::english);

}  // namespace saturate
