// SPDX-License-Identifier: Apache-2.0
#include "tuning/fix_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "diagnosis/python_json.h"
#include "remedies/catalogue.h"
#include "tuning/in_force.h"

namespace saturate {

namespace {

constexpr double kLeastShare = 1 - 1 / kFixGain;

// Free and harmless changes: tried together, and one by one if the group does not gain.
constexpr std::array<std::string_view, 4> kFree = {"pin_memory", "non_blocking", "fused_optimizer",
                                                   "set_to_none"};

// Time in which the host reads values, as a share of the step time. Nothing if not measured.
std::optional<double> reads_share(const WatchedRun& watched) {
    const Json& reads = watched.record.python["reads"];
    auto steps = watched.record.python["reads_steps"].integer();
    if (!reads.is_array() || !steps || *steps <= 0 || watched.rate.step_seconds <= 0)
        return std::nullopt;
    double ns = 0;
    for (const Json& read : reads.items()) ns += read["ns"].number().value_or(0);
    return ns / 1e9 / static_cast<double>(*steps) / watched.rate.step_seconds;
}

struct Pause {
    std::string_view what;
    std::optional<double> seconds;  // per epoch
    std::optional<double> most = {};
    [[nodiscard]] double longest(double epoch_seconds) const {
        return seconds.value_or(most.value_or(epoch_seconds));
    }
};
// The pause between epochs that the change shortens, or nothing if the change is about the steps.
std::optional<Pause> pause_of(const FixProposal& proposal, const WatchedRun& watched) {
    const EpochTimes& epoch = watched.epoch;
    if (proposal.setting == "eval_interval") return Pause{"evaluation", epoch.evaluation};
    if (proposal.setting == "checkpoint_interval") return Pause{"checkpoints", epoch.checkpoint};
    if (proposal.setting != "persistent_workers") return std::nullopt;
    Json loader = training_loader(watched.record.python);
    // Without workers there is no start of workers to measure.
    bool has_workers = loader["num_workers"].integer().value_or(0) > 0;
    if (!has_workers) return Pause{"the start of the workers", std::nullopt};
    return Pause{"the start of the workers", epoch.start, epoch.start_most};
}

// Why no run can show what a shorter pause gains, or "". Only a run over whole epochs shows it.
std::string hopeless_pause(const Pause& pause, const FixProposal& proposal,
                           const WatchedRun& watched) {
    double share = pause.seconds.value_or(0) / std::max(watched.epoch.seconds, 1e-9);
    if (pause.seconds && share < kLeastShare)
        return fmt::format("{} takes {:.1f} % of an epoch, and no more than that can be gained",
                           pause.what, 100 * share);
    // Most jobs have epochs far longer than a trial, so only an upper bound was seen.
    double most = pause.longest(watched.epoch.seconds) / std::max(watched.epoch.seconds, 1e-9);
    if (pause.most && most < kLeastShare)
        return fmt::format(
            "{} takes at most {:.1f} % of an epoch, and no more than that can be gained",
            pause.what, 100 * most);
    // In fewer epochs than its interval, the pause would not occur at all.
    int interval = interval_of(proposal);
    if (watched.epochs > 0 && watched.epochs % interval == 0) return "";
    std::string computed =
        pause.seconds ? fmt::format("; {} takes {:.0f} % of one", pause.what, 100 * share) : "";
    if (watched.epoch.steps == 0)
        return "its gain only shows over whole epochs, and no epoch ended";
    if (watched.epochs > 0)
        return "its gain only shows over more epochs than a trial can run within the budget" +
               computed;
    return fmt::format(
        "its gain only shows over whole epochs, and one takes {:.0f} s: too long to repeat within "
        "the budget{}",
        std::max(1.0, watched.epoch.seconds), computed);
}

// Returns why the proposal cannot gain; empty: it may.
std::string hopeless(const FixProposal& proposal, const WatchedRun& watched) {
    const Remedy* remedy = find_remedy(proposal.setting);
    if (!remedy) return "";
    if (watched.unseen_calls.contains(proposal.call) ||
        watched.unseen_loops.contains(proposal.loop))
        return "the watched run never reached this part of your code";
    // The edit of a training loop adds CUDA's autocast, and some edits ask for a GPU themselves. A
    // framework's own setting may help on a CPU.
    bool is_cuda_only = (proposal.setting == "precision" && proposal.loop >= 0) ||
                        proposal.after.find("cuda.is_available()") != std::string::npos;
    if ((remedy->for_gpu || is_cuda_only) && !watched.has_gpu)
        return "it does nothing without a GPU, and there is none here";
    auto pause = pause_of(proposal, watched);
    if (pause) {
        std::string why = hopeless_pause(*pause, proposal, watched);
        if (!why.empty() || pause->seconds) return why;
    }
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

// The largest share of the time that a cause of the proposal takes, in percent. A proposal that
// relieves no cause found gets 0 and is tried later.
double share_of(const FixProposal& proposal, const WatchedRun& watched) {
    const Remedy* remedy = find_remedy(proposal.setting);
    double most = 0;
    if (!remedy) return most;
    for (const Finding& finding : watched.findings) {
        if (!remedy->relieves(finding.id)) continue;
        // Some findings have a gain but no share of the time.
        most = std::max({most, finding.share_percent, 100 * (1 - 1 / finding.gain.likely)});
    }
    if (remedy->relief == Relief::input || !proposal.room_for.empty())
        most = std::max(most, 100 * watched.rate.input_wait_share);
    auto pause = pause_of(proposal, watched);
    if (pause && pause->seconds && watched.epoch.seconds > 0)
        most = std::max(most, 100 * *pause->seconds / watched.epoch.seconds);
    return most;
}

}  // namespace

bool has_compile(std::span<const FixProposal* const> changes) {
    return std::ranges::find(changes, "compile", &FixProposal::setting) != changes.end();
}

int interval_of(const FixProposal& proposal) {
    if (proposal.setting != "eval_interval" && proposal.setting != "checkpoint_interval") return 1;
    return static_cast<int>(std::clamp(parse_number(proposal.after).value_or(1), 1.0, 1e6));
}

double batch_growth(std::span<const FixProposal* const> changes) {
    double out = 1;
    for (const FixProposal* change : changes) {
        if (change->setting != "batch_size") continue;
        double before = parse_number(change->before).value_or(0);
        double after = parse_number(change->after).value_or(0);
        if (before > 0 && after > 0) out = after / before;
    }
    return out;
}

std::int64_t workers_with(std::span<const FixProposal* const> changes, const RunRecord& watched) {
    std::int64_t out = training_loader(watched.python)["num_workers"].integer().value_or(0);
    for (const FixProposal* change : changes)
        if (change->setting == "num_workers") out = parse_integer(change->after).value_or(out);
    return out;
}

std::int64_t ready_batches(std::span<const FixProposal* const> changes, const RunRecord& watched) {
    constexpr std::int64_t kUsual = 2;  // default of DataLoader
    std::int64_t each =
        training_loader(watched.python)["prefetch_factor"].integer().value_or(kUsual);
    return each * workers_with(changes, watched);
}

std::string missing_for(const FixProposal& proposal, std::span<const FixProposal* const> changes,
                        const RunRecord& watched) {
    bool is_of_workers =
        proposal.setting == "persistent_workers" || proposal.setting == "prefetch_factor";
    bool is_known = training_loader(watched.python)["num_workers"].integer().has_value();
    if (!is_of_workers || !is_known || workers_with(changes, watched) > 0) return "";
    return "the loader has no workers";
}

std::map<std::string, std::string> missing_beside(const FixPlan& plan,
                                                  std::span<const FixProposal* const> kept,
                                                  const RunRecord& watched) {
    std::map<std::string, std::string> out;
    for (const FixProposal& proposal : plan.proposals)
        if (std::string why = missing_for(proposal, kept, watched); !why.empty())
            out[proposal.id] = why;
    return out;
}

FixOrder order_trials(const FixPlan& plan, const WatchedRun& watched) {
    FixOrder out;
    std::vector<const FixProposal*> free, rest;
    for (const FixProposal& proposal : plan.proposals) {
        if (std::string why = hopeless(proposal, watched); !why.empty()) {
            out.left_out[proposal.id] = why;
            // A pause that was not seen may still be long.
            auto pause = pause_of(proposal, watched);
            double seconds = pause ? pause->longest(watched.epoch.seconds) : 0;
            if (seconds > 0 && seconds >= kLeastShare * watched.epoch.seconds &&
                missing_for(proposal, {}, watched.record).empty()) {
                out.epochs_wanted = std::max(out.epochs_wanted, interval_of(proposal));
                out.for_epochs.insert(proposal.id);
            }
        } else if (std::ranges::find(kFree, proposal.setting) != kFree.end()) {
            free.push_back(&proposal);
        } else {
            rest.push_back(&proposal);
        }
    }
    for (const FixProposal& proposal : plan.proposals) {
        std::string why = missing_for(proposal, rest, watched.record);
        if (why.empty()) continue;
        std::erase(rest, &proposal);
        out.left_out[proposal.id] = why;
    }
    // Of those that relieve as much, the one that compiles first takes longest to try.
    std::ranges::stable_sort(rest, std::greater<>(), [&](const FixProposal* proposal) {
        return std::pair(share_of(*proposal, watched), proposal->setting != "compile");
    });
    // Moves what only helps workers to the place behind them.
    auto behind = std::ranges::stable_partition(rest, [&](const FixProposal* proposal) {
        return missing_for(*proposal, {}, watched.record).empty();
    });
    auto workers = std::find_if(rest.begin(), behind.begin(), [](const FixProposal* proposal) {
        return proposal->setting == "num_workers";
    });
    if (workers != behind.begin()) std::rotate(workers + 1, behind.begin(), rest.end());
    for (const FixProposal* proposal : rest) out.trials.push_back({proposal});
    // Tries the free changes after a cause that takes most of the time: it would hide their gain.
    bool is_behind = !rest.empty() && share_of(*rest[0], watched) >= 100 * kLeastShare;
    if (!free.empty()) out.trials.insert(out.trials.begin() + (is_behind ? 1 : 0), free);
    auto relieves = [&](const FixProposal* one) {
        return share_of(*one, watched) >= 100 * kLeastShare;
    };
    while (out.by_cause < out.trials.size() &&
           std::ranges::any_of(out.trials[out.by_cause], relieves))
        ++out.by_cause;
    return out;
}

std::vector<const FixProposal*> with_what_needs_it(const FixProposal& room, const FixPlan& plan,
                                                   std::span<const FixProposal* const> kept,
                                                   const std::set<std::string>& measured) {
    auto needs_it = [&](const FixProposal& one) { return one.setting == room.room_for; };
    if (std::ranges::any_of(kept, [&](const FixProposal* one) { return needs_it(*one); }))
        return {&room};
    for (const FixProposal& proposal : plan.proposals)
        if (needs_it(proposal) && measured.contains(proposal.id)) return {&proposal, &room};
    return {};
}

std::string moot(const FixProposal& proposal, const std::vector<const FixProposal*>& kept) {
    static constexpr std::array<std::string_view, 3> kOfWorkers = {
        "num_workers", "persistent_workers", "prefetch_factor"};
    bool is_of_workers = std::ranges::find(kOfWorkers, proposal.setting) != kOfWorkers.end();
    bool is_replaced = std::ranges::any_of(kept, [&](const FixProposal* one) {
        return one->setting == "saturate_loader" && one->call == proposal.call;
    });
    return is_of_workers && is_replaced ? "saturate_gpu.Loader has its own threads" : "";
}

std::optional<std::string> not_in_force(const FixProposal& proposal, const RunRecord& record) {
    static constexpr std::array<std::string_view, 11> kTold = {
        "num_workers", "prefetch_factor", "persistent_workers",
        "pin_memory",  "batch_size",      "fused_optimizer",
        "tf32",        "cudnn_benchmark", "precision",
        "threads",     "saturate_loader"};
    if (std::ranges::find(kTold, proposal.setting) == kTold.end()) return std::nullopt;
    auto why_not = [&](const std::string& asked) {
        auto why = not_in_force(Assignment{{proposal.setting, asked}}, record);
        return why && why->ends_with("the record does not show it") ? std::nullopt : why;
    };
    if (proposal.setting == "precision")
        return why_not("bf16") && why_not("fp16") ? why_not("bf16") : std::nullopt;
    // An edit may be an expression ("workers > 0", "torch.cuda.is_available()"): true is expected.
    return why_not(parse_integer(proposal.after) ? proposal.after : "true");
}

}  // namespace saturate
