// SPDX-License-Identifier: Apache-2.0
// The pages that only `serve` has: the list of runs, and the page that waits for the first run.
// Pure functions. The list is searched and sorted here and not in JavaScript, so that its address
// can be bookmarked and a live page keeps the reader's choice.
#pragma once

#include <string>

#include "report/run_shelf.h"
#include "words/words.h"

namespace saturate {

// The search and sort order of the list. Unknown values count as not given.
struct ListView {
    std::string find;   // runs with these words in their name, kind, state or device
    std::string by;     // "rate": fastest first; "-rate": slowest first; empty: newest first
    std::string group;  // show only the runs of this folder, such as the trials of a search

    [[nodiscard]] std::string query() const;  // "?find=...", for a link
};

[[nodiscard]] std::string run_list_html(const Listing& listing, const ListView& view,
                                        Language language, const std::string& version);
[[nodiscard]] std::string no_run_html(Language language, const std::string& version);

// Returns the state of a run in the reader's language: running, done, interrupted, failed, stopped.
[[nodiscard]] std::string state_text(const std::string& state, Language language);

}  // namespace saturate
