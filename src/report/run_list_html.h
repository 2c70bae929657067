// SPDX-License-Identifier: Apache-2.0
// The pages of `serve` that no file has: the list of runs, and the wait for the first one. Text in,
// text out.
#pragma once

#include <string>

#include "report/run_shelf.h"
#include "words/words.h"

namespace saturate {

[[nodiscard]] std::string run_list_html(const Listing& listing, Language language,
                                        const std::string& version);
[[nodiscard]] std::string no_run_html(Language language, const std::string& version);

// Words for a run's state: running, done, interrupted, failed, stopped.
[[nodiscard]] std::string state_text(const std::string& state, Language language);

}  // namespace saturate
