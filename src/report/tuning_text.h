// SPDX-License-Identifier: Apache-2.0
// The text of a search for a terminal: a line per trial while it runs, then the tables.
#pragma once

#include <string>

#include "base/figures.h"
#include "tuning/proof.h"
#include "tuning/search.h"

namespace saturate {

// "  7  num_workers=4                1,204 samples/s (n=8, 1,190..1,221)  +63 %  kept"
[[nodiscard]] std::string trial_line(int number, const Tried& tried);
// Returns one row per batch size with memory, rate and whether it fits, then the fitted lines and
// the answer.
[[nodiscard]] std::string batch_text(const BatchAnswer& answer);
// The heads, and a row for each setting that was kept, with its measured effect if the proof
// confirms it.
[[nodiscard]] std::vector<std::vector<std::string>> kept_rows(const SearchAnswer& answer,
                                                              const Assignment& start,
                                                              bool is_proven);
// The same as text, or "" if none were kept.
[[nodiscard]] std::string kept_text(const SearchAnswer& answer, const Assignment& start,
                                    bool is_proven);
// Returns the rate without the loader, batch sizes, changes not kept, and why the search ended.
[[nodiscard]] std::string search_text(const SearchAnswer& answer);
// "412 samples/s (n=5, 404..419) -> 1,204 (n=5, 1,190..1,221): 2.92 times [2.85, 2.99], faster"
[[nodiscard]] std::string proof_text(const Proof& proof);

}  // namespace saturate
