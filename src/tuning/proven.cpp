// SPDX-License-Identifier: Apache-2.0
#include "tuning/proven.h"

#include <fmt/format.h>

#include <algorithm>

#include "tuning/pauses.h"

namespace saturate {

namespace {

// Returns why the proof does not cover the settings; empty: it covers them.
std::string why_not(const TuneRequest& request, const TuneAnswer& answer) {
    if (!answer.proof)
        return answer.interrupted ? "interrupted before the proof" : "no proof was made";
    const Proof& proof = *answer.proof;
    switch (proof.verdict) {
        case Verdict::no_difference:
            return "the proof shows no difference";
        case Verdict::slower:
            return "the proof shows that they are slower";
        case Verdict::not_proven:
            return fmt::format(
                "{}the proof has {} of {} pairs{}", answer.interrupted ? "interrupted: " : "",
                proof.pairs.size(), kProofPairs,
                proof.longer.empty() ? "" : fmt::format("; run longer: --budget {}", proof.longer));
        case Verdict::faster:
            break;
    }
    if (needs_loss_guard(request, answer.search.best) &&
        (!answer.guard || answer.guard->verdict != GuardVerdict::holds))
        return answer.guard ? answer.guard->text : "the losses were not compared";
    // The losses of a user's command count if they were seen.
    if (answer.guard && (answer.guard->verdict == GuardVerdict::differs ||
                         answer.guard->verdict == GuardVerdict::nonfinite))
        return answer.guard->text;
    return "";
}

}  // namespace

ProvenSettings proven_settings(const TuneRequest& request, const TuneAnswer& answer) {
    ProvenSettings out;
    out.why = answer.search.best.empty() ? "" : why_not(request, answer);
    for (const auto& [key, value] : answer.search.best) {
        if (is_interval(key))
            out.rest.push_back({key, value, "computed from the pauses, not part of the proof"});
        else if (!out.why.empty())
            out.rest.push_back({key, value, out.why});
        else
            out.settings[key] = value;
    }
    return out;
}

}  // namespace saturate
