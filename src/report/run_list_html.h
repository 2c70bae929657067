// SPDX-License-Identifier: Apache-2.0
// The pages of `serve` that no file has: the list of runs, and the wait for the first one. Text in,
// text out. The list is searched and sorted here and not by a script: its address says how, so it
// can be kept, and a live page stays as its reader has put it.
#pragma once

#include <string>

#include "report/run_shelf.h"
#include "words/words.h"

namespace saturate {

// How a reader wants the list. Anything that is not known counts as not asked for.
struct ListView {
    std::string find;   // runs with these words in their name, kind, state or device
    std::string by;     // "rate": the fastest first; "-rate": the slowest; empty: the newest
    std::string group;  // only the runs of this folder, such as the trials of one search

    [[nodiscard]] std::string query() const;  // "?find=...", for a link
};

[[nodiscard]] std::string run_list_html(const Listing& listing, const ListView& view,
                                        Language language, const std::string& version);
[[nodiscard]] std::string no_run_html(Language language, const std::string& version);

// Words for a run's state: running, done, interrupted, failed, stopped.
[[nodiscard]] std::string state_text(const std::string& state, Language language);

}  // namespace saturate
