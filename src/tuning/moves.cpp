// SPDX-License-Identifier: Apache-2.0
#include "tuning/moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/text.h"

namespace saturate {

namespace {

constexpr double kWaitingDevice = 0.25;  // from this idle share on, the device is not the limit
constexpr double kSerialLog = 0.03;  // from this share of loss reads on, host and device take turns

// True for a setting that has its own search, follows from it, or is tried last.
bool is_tried_elsewhere(std::string_view setting) {
    return is_one_of(setting,
                     {"batch_size", "gradient_accumulation_steps", "learning_rate", "compile"});
}

// The part of the step that waits, or the name of the remedy if there is none.
std::string cause_of(const Remedy& remedy) {
    switch (remedy.relief) {
        case Relief::input:
            return "input";
        case Relief::copy:
            return "copy";
        case Relief::log:
            return "reading the loss";
        default:
            return std::string(remedy.name);
    }
}

// The facts with the settings in force. The engine's defaults are known, a script's are not.
Facts facts_now(const Facts& facts, const Assignment& now, double step_seconds) {
    Facts out = facts;
    out.now = facts.is_python ? now : with_defaults(now);
    out.is_measuring = true;
    out.step_seconds = step_seconds;
    return out;
}

// Adds a move for the proposed value and one for each further value worth a trial.
void add(std::vector<Move>& moves, const Remedy& remedy, const Facts& facts) {
    if (remedy.level() > facts.level || (remedy.for_gpu && facts.on_cpu)) return;
    Proposal proposal = remedy.propose(facts);
    if (!proposal.value || proposal.level.value_or(remedy.level()) > facts.level) return;
    std::string name(remedy.name);
    Move move{cause_of(remedy), proposal.with, proposal.reason, remedy.relief, name};
    move.change[name] = *proposal.value;
    moves.push_back(move);
    for (const std::string& value : proposal.also) {
        move.change[name] = value;
        move.reason = fmt::format("{} instead of {}: fewer processes share the cores", value,
                                  *proposal.value);
        moves.push_back(move);
    }
}

// Half of the computed workers may be enough, even if the full number is already in force.
void add_half_the_workers(std::vector<Move>& moves, const Facts& facts) {
    std::string half = std::to_string((worker_count(facts) + 1) / 2);
    auto is_there = [&](const Move& move) {
        auto found = move.change.find("num_workers");
        return found != move.change.end() && found->second == half;
    };
    if (facts.in_memory || facts.value("num_workers") == half ||
        std::ranges::any_of(moves, is_there))
        return;
    moves.push_back({"input",
                     {{"num_workers", half}},
                     "half as many: workers share the cores",
                     Relief::input,
                     "num_workers"});
}

}  // namespace

std::vector<Move> loader_moves(const Facts& facts, const Assignment& now, const Rate& rate,
                               double bound) {
    Facts here = facts_now(facts, now, rate.step_seconds);
    here.spread = rate.spread();
    // The loader's work per batch, hidden or waited for, and the time that the model alone needs.
    double workers = here.number("num_workers").value_or(0);
    double step = rate.step_seconds;
    double compute =
        bound > 0 ? step * rate.per_second / bound : step * (1 - rate.input_wait_share);
    here.loader =
        LoaderTimes{.fetch_seconds = workers > 0 ? step * workers : std::max(step - compute, 0.0),
                    .compute_seconds = compute};
    std::vector<Move> moves;
    for (const Remedy& remedy : remedies()) {
        bool is_for_loader = remedy.relief == Relief::input || remedy.name == "threads";
        if (!is_for_loader || !remedy.is_measured) continue;
        add(moves, remedy, here);
        if (remedy.name == "num_workers") add_half_the_workers(moves, here);
    }
    return moves;
}

void add_watched_workers(std::vector<Move>& moves, const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
        for (const SettingChange& change : finding.settings) {
            if (change.key != "num_workers" || !parse_integer(change.value)) continue;
            bool is_there = std::ranges::any_of(moves, [&](const Move& move) {
                return value_of(move.change, "num_workers") == change.value;
            });
            if (is_there) return;
            Move move{"input",
                      {{"num_workers", change.value}},
                      fmt::format("judging by the time a batch takes, {} fit", change.value),
                      Relief::input,
                      "num_workers"};
            moves.insert(moves.begin(), move);
            return;
        }
    }
}

std::vector<Move> compute_moves(const Facts& facts, const Assignment& now, double step_seconds) {
    Facts here = facts_now(facts, now, step_seconds);
    std::vector<Move> moves;
    for (const Remedy& remedy : remedies()) {
        if (!remedy.is_measured || remedy.relief == Relief::input ||
            is_tried_elsewhere(remedy.name))
            continue;
        // A setting that goes along with another one has no trial of its own.
        bool is_along = std::ranges::any_of(moves, [&](const Move& move) {
            return move.change.size() > 1 && move.change.contains(std::string(remedy.name));
        });
        if (!is_along) add(moves, remedy, here);
    }
    if (auto move = compiler_move(facts, now); move && !facts.on_cpu) moves.push_back(*move);
    return moves;
}

double most_gain(Relief relief, const Facts& facts, const Rate& rate) {
    if (facts.on_cpu) return 1;
    bool exact = facts.busy_is_exact && rate.device_busy_share.has_value();
    double idle = exact ? 1 - *rate.device_busy_share : 1;
    switch (relief) {
        case Relief::copy:
            return std::min(rate.copy_share, idle);
        case Relief::log:
            return std::min(rate.log_share, idle);
        case Relief::host:
            return idle;
        case Relief::device:
            // A device that waits for the host or the loader gains nothing from being faster,
            // unless the host also waits for the device at every reading of the loss.
            return exact && idle > kWaitingDevice && rate.log_share < kSerialLog ? 0 : 1;
        case Relief::input:
        case Relief::pause:
        case Relief::unknown:
            break;
    }
    return 1;
}

std::optional<Move> compiler_move(const Facts& facts, const Assignment& now) {
    std::vector<Move> moves;
    if (facts.can_compile) add(moves, *find_remedy("compile"), facts_now(facts, now, 0));
    return moves.empty() ? std::nullopt : std::optional(moves[0]);
}

std::optional<Move> paired_move(const Facts& facts, const Assignment& now) {
    constexpr double kPairBatch = 8;  // times the current batch
    Facts here = facts_now(facts, now, 0);
    auto batch = here.number("batch_size");
    if (!facts.on_cpu || !batch || facts.level < Level::training) return std::nullopt;
    for (const Remedy& remedy : remedies()) {
        if (remedy.pair != "batch_size") continue;
        std::vector<Move> moves;
        add(moves, remedy, here);
        if (moves.empty()) continue;
        Move& move = moves[0];
        move.cause = fmt::format("{} and batch_size", remedy.name);
        move.reason = "may only gain together: on a CPU the best layout depends on the batch size";
        move.change["batch_size"] = fmt::format("{:.0f}", kPairBatch * *batch);
        return move;
    }
    return std::nullopt;
}

void order_by_cause(std::vector<Move>& moves, const std::vector<Finding>& findings) {
    auto share = [&](const Move& move) {
        double most = 0;
        for (const auto& [name, value] : move.change) {
            const Remedy* remedy = find_remedy(name);
            for (const Finding& finding : findings) {
                if (remedy && remedy->relieves(finding.id))
                    most = std::max(most, finding.share_percent);
            }
        }
        return most;
    };
    std::ranges::stable_sort(moves, std::greater<>(), share);
}

}  // namespace saturate
