// SPDX-License-Identifier: Apache-2.0
#include "tuning/fix_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "remedies/catalogue.h"
#include "tuning/in_force.h"

namespace saturate {

namespace {

constexpr double kLeastShare = 1 - 1 / kFixGain;

// They cost nothing and hurt nowhere: tried together, and taken apart where that does not gain.
constexpr std::array<std::string_view, 4> kFree = {"pin_memory", "non_blocking", "fused_optimizer",
                                                   "set_to_none"};

// Readings of values by the host, as a share of the steps' time; nothing where it was not measured.
std::optional<double> reads_share(const WatchedRun& watched) {
    const Json& reads = watched.record.python["reads"];
    auto steps = watched.record.python["reads_steps"].integer();
    if (!reads.is_array() || !steps || *steps <= 0 || watched.rate.step_seconds <= 0)
        return std::nullopt;
    double ns = 0;
    for (const Json& read : reads.items()) ns += read["ns"].number().value_or(0);
    return ns / 1e9 / static_cast<double>(*steps) / watched.rate.step_seconds;
}

// Why the proposal cannot gain; empty: it may.
std::string hopeless(const FixProposal& proposal, const WatchedRun& watched) {
    const Remedy* remedy = find_remedy(proposal.setting);
    if (!remedy) return "";
    if (remedy->for_gpu && !watched.has_gpu)
        return "it does nothing without a GPU, and there is none here";
    if (remedy->relief == Relief::pause)
        return "a run of seconds cannot measure it: it makes the pauses between epochs fewer";
    const Rate& rate = watched.rate;
    if (remedy->relief == Relief::input && rate.input_wait_share < kLeastShare)
        return fmt::format(
            "the steps wait for data {:.1f} % of their time, and no more than that "
            "can be gained",
            100 * rate.input_wait_share);
    if (remedy->relief == Relief::log && !watched.has_gpu)
        return "on a CPU reading a value waits for nothing";
    if (remedy->relief == Relief::log) {
        auto share = reads_share(watched);
        if (share && *share < kLeastShare)
            return fmt::format(
                "reading values takes {:.1f} % of a step, and no more than that can "
                "be gained",
                100 * *share);
    }
    return "";
}

// By the part of the time that its causes take; what relieves none that was found comes later.
double share_of(const FixProposal& proposal, const WatchedRun& watched) {
    const Remedy* remedy = find_remedy(proposal.setting);
    double most = 0;
    if (!remedy) return most;
    for (const Finding& finding : watched.findings)
        if (remedy->relieves(finding.id)) most = std::max(most, finding.share_percent);
    if (remedy->relief == Relief::input) most = std::max(most, 100 * watched.rate.input_wait_share);
    return most;
}

}  // namespace

FixOrder order_trials(const FixPlan& plan, const WatchedRun& watched) {
    FixOrder out;
    std::vector<const FixProposal*> free, rest;
    for (const FixProposal& proposal : plan.proposals) {
        if (std::string why = hopeless(proposal, watched); !why.empty())
            out.left_out[proposal.id] = why;
        else if (std::ranges::find(kFree, proposal.setting) != kFree.end())
            free.push_back(&proposal);
        else
            rest.push_back(&proposal);
    }
    std::ranges::stable_sort(rest, std::greater<>(), [&](const FixProposal* proposal) {
        return share_of(*proposal, watched);
    });
    for (const FixProposal* proposal : rest) out.trials.push_back({proposal});
    // Behind a cause that takes most of the time: it would hide what they give.
    bool is_behind = !rest.empty() && share_of(*rest[0], watched) >= 100 * kLeastShare;
    if (!free.empty()) out.trials.insert(out.trials.begin() + (is_behind ? 1 : 0), free);
    return out;
}

std::optional<std::string> not_in_force(const FixProposal& proposal, const RunRecord& record) {
    static constexpr std::array<std::string_view, 9> kTold = {
        "num_workers", "prefetch_factor", "persistent_workers",
        "pin_memory",  "batch_size",      "fused_optimizer",
        "tf32",        "cudnn_benchmark", "precision"};
    if (std::ranges::find(kTold, proposal.setting) == kTold.end()) return std::nullopt;
    auto why_not = [&](const std::string& asked) {
        auto why = not_in_force(Assignment{{proposal.setting, asked}}, record);
        return why && why->ends_with("the record does not show it") ? std::nullopt : why;
    };
    if (proposal.setting == "precision")
        return why_not("bf16") && why_not("fp16") ? why_not("bf16") : std::nullopt;
    // An edit may be an expression ("workers > 0", "torch.cuda.is_available()") that is to be true.
    return why_not(parse_integer(proposal.after) ? proposal.after : "true");
}

}  // namespace saturate
