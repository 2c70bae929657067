// SPDX-License-Identifier: Apache-2.0
// The page of a fix: why the job is slow, what was tried with its measured effect, the proof and
// the losses as pictures, and the patch. Self-contained; reads without a script.
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
    const Proof* proof = nullptr;  // null: nothing was kept
    LossCurve losses_before, losses_after;
    int trials = 0;
    double seconds = 0;
    std::string busy = {};  // other work on this machine; empty: little or none
    Language language = Language::english;
};

[[nodiscard]] std::string fix_html(const FixPage& page);

// "1.62 times as fast, proven", "nothing to gain was found": the page's first line, and the last
// word of the text.
[[nodiscard]] std::string fix_verdict(const FixAnswer& answer, const Proof* proof);

}  // namespace saturate
