// SPDX-License-Identifier: Apache-2.0
// The HTML page of a fix: why the job is slow, the changes tried with their measured effects,
// charts of the proof and the losses, and the patch. Self-contained; readable without JavaScript.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/finding.h"
#include "project/fix_answer.h"
#include "tuning/loss_guard.h"
#include "tuning/proof.h"
#include "tuning/rate.h"
#include "words/words.h"

namespace saturate {

struct FixPage {
    const FixAnswer& answer;
    std::string command;
    std::optional<Rate> baseline;
    std::vector<Finding> findings;
    const Proof* proof = nullptr;  // null if nothing was kept
    LossCurve losses_before, losses_after;
    int trials = 0;
    double seconds = 0;
    std::string busy = {};            // other work on this machine; empty if little or none
    std::string with_more_time = {};  // of fix_run_text.h
    Language language = Language::english;
};

[[nodiscard]] std::string fix_html(const FixPage& page);

// Returns "1.62 times as fast, proven" or "nothing to gain was found": the first line of the page
// and the last of the text.
[[nodiscard]] std::string fix_verdict(const FixAnswer& answer, const Proof* proof);

}  // namespace saturate
