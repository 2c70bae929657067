// SPDX-License-Identifier: Apache-2.0
#include "tuning/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ranges>
#include <set>
#include <utility>

#include "base/text.h"
#include "diagnosis/diagnosis.h"
#include "tuning/command.h"
#include "tuning/contest.h"
#include "tuning/pauses.h"

namespace saturate {

namespace {

// A change that gained nothing is tried again if it could now gain this much more of the step, or
// if the batch is this many times larger.
constexpr double kMoreToGain = 0.05;
constexpr double kOtherBatch = 4;
// An epoch keeps at least this many steps; otherwise training would see only one large batch.
constexpr double kLeastStepsPerEpoch = 8;
// A smaller batch changes the optimisation, so it must gain at least this much.
constexpr double kLeastGainSmaller = 0.05;
// Building the graph that `compile` runs takes about a minute on a CPU.
constexpr double kCompileSeconds = 45;
// From this idle share on, the final text says that no setting can remove the rest.
constexpr double kIdleDevice = 0.25;
// A bound this far below the measured rate was disturbed.
constexpr double kNoisyBound = 0.1;
constexpr double kFillShare = 0.1;  // share of the remaining time that filling a cache may take

// The circumstances in which a change was tried.
struct Circumstances {
    double most_gain = 1;
    double batch = 0;
};

class Search {
  public:
    Search(const SearchSettings& settings, const RunTrial& run)
        : settings_(settings), facts_(settings.facts), contest_(settings, run, answer_) {}

    SearchAnswer find() {
        if (!take_baseline()) return std::move(answer_);
        take_bound();
        // Loader, device, batch, then again: each change may move the cause to another part. Close
        // calls, which only repetition can decide, come after the clear ones.
        for (int round = 0; round < 4 && answer_.ended.empty(); ++round) {
            bool input = improve_input();
            bool compute = improve_compute();
            bool batch = (round == 0 || compute) && improve_batch(round == 0);
            if (!input && !compute && !batch && !contest_.settle()) break;
        }
        try_pair();
        improve_pauses();
        try_compiler();
        if (answer_.ended.empty()) answer_.ended = why_done();
        answer_.best_rate = contest_.rate();
        return std::move(answer_);
    }

  private:
    bool take_baseline() {
        TrialResult result = contest_.trial({});
        Tried& tried =
            contest_.note("baseline", "the configuration without any change", {}, result);
        tried.kept = result.ok();
        contest_.tell(tried);
        if (!result.ok()) {
            answer_.ended =
                fmt::format("the configuration itself does not run: {}",
                            result.message.empty() ? std::string(outcome_name(result.outcome))
                                                   : result.message);
            return false;
        }
        contest_.begin(result);
        samples_per_epoch_ = result.samples_per_epoch.value_or(0);
        learn(result.record.python);
        if (contest_.rate().n >= 6 && contest_.rate().trend > 0.1)
            answer_.notes.push_back(
                fmt::format("the job gets slower as it runs ({:.0f} % over the trial): rates are "
                            "taken from its start",
                            100 * contest_.rate().trend));
        return true;
    }

    // Adds what a Python script's own code says, so that it needs no --set.
    void learn(const Json& python) {
        if (!python.is_object()) return;
        ScriptFacts script = script_facts(python);
        for (const auto& [key, value] : script.values) contest_.learn(key, value);
        facts_.is_python = true;
        facts_.in_memory = script.in_memory;
    }

    // Measures the most that the loader can give: if that is little, the loader is left alone.
    void take_bound() {
        if (!contest_.may_go_on()) return;
        // Without workers the wait is the whole cost of loading: a trial could not tell more.
        double waited = contest_.rate().input_wait_share;
        bool is_all =
            value_of(contest_.settings(), "num_workers") == "0" && waited < settings_.cause_least;
        if (is_all || !settings_.can_leave_loader_out) {
            bound_ = contest_.rate().per_second / std::max(0.01, 1 - waited);
            if (!answer_.upper_bound) answer_.upper_bound = bound_;
            return;
        }
        TrialResult result = contest_.trial({}, {.without_loader = true});
        Tried& tried = contest_.note(
            "upper bound", "the same batch again and again, without the loader", {}, result);
        contest_.tell(tried);
        if (!result.ok()) {
            answer_.notes.push_back("the upper bound without the loader could not be measured: " +
                                    result.message);
            return;
        }
        // No job is faster with its loader than without it. If it looks faster, the machine did
        // something else during the measurement.
        double measured = result.samples_per_second->per_second;
        bound_ = std::max(measured, contest_.rate().per_second);
        if (measured < (1 - kNoisyBound) * contest_.rate().per_second)
            answer_.notes.push_back(fmt::format(
                "without the loader it was slower than with it ({:.0f} and {:.0f} samples/s): "
                "something else is using this machine, so do not trust single trials",
                measured, contest_.rate().per_second));
        if (!answer_.upper_bound) answer_.upper_bound = bound_;
    }

    // The share that the loader costs: from the bound if known. The host's wait does not measure it
    // on a device that works on meanwhile.
    [[nodiscard]] double input_share() const {
        if (!bound_) return contest_.rate().input_wait_share;
        return *bound_ > contest_.rate().per_second ? 1 - contest_.rate().per_second / *bound_ : 0;
    }

    // If the loader is far from being the bottleneck, a change needs no new bound.
    [[nodiscard]] bool input_matters() const {
        return contest_.rate().input_wait_share >= 0.01 || input_share() >= settings_.cause_least;
    }

    [[nodiscard]] bool is_tunable(const std::string& key) const {
        return settings_.tunable.empty() || settings_.tunable.contains(key);
    }

    bool attempt(Move move) {
        // Drops the accompanying changes that are not tunable.
        if (!is_tunable(move.key)) answer_.unreachable.insert(move.key);
        std::erase_if(move.change, [&](const auto& entry) { return !is_tunable(entry.first); });
        if (!move.change.contains(move.key)) return false;
        Assignment wish = contest_.settings();
        for (const auto& [key, value] : move.change) wish[key] = value;
        if (!seen_.insert(wish).second || !contest_.may_go_on()) return false;
        tried_[move.change] = circumstances(move);
        return contest_.attempt(move);
    }

    bool improve_input() {
        bool changed = false;
        // The loop ends: every attempt is a different assignment, and there are few moves.
        for (bool again = true;
             again && answer_.ended.empty() && input_share() >= settings_.cause_least;) {
            again = false;
            std::vector<Move> moves =
                loader_moves(facts_, contest_.settings(), contest_.rate(), bound_.value_or(0));
            if (facts_.is_python) add_watched_workers(moves, findings());
            for (const Move& move : led(std::move(moves))) {
                if (!has_time_for(move) || !attempt(move)) continue;
                changed = again = true;
                break;
            }
        }
        return changed;
    }

    // Orders the moves by the biggest causes in the record of the settings in force.
    [[nodiscard]] std::vector<Move> led(std::vector<Move> moves) const {
        order_by_cause(moves, findings());
        return moves;
    }

    // Of the run with the settings in force.
    [[nodiscard]] std::vector<Finding> findings() const {
        const RunRecord& record = contest_.result().record;
        if (record.steps.empty()) return {};
        return diagnose_run(record, "").findings;
    }

    // True if the time is enough for the move. Every run with a cache first fills it, which takes
    // an epoch.
    bool has_time_for(const Move& move) {
        if (!move.change.contains("cache")) return true;
        double fill = static_cast<double>(samples_per_epoch_) / contest_.rate().per_second;
        if (fill <= kFillShare * contest_.seconds_left()) return true;
        if (!std::exchange(told_of_cache_, true))
            answer_.notes.push_back(
                fmt::format("cache=ram was not tried: filling it takes an epoch, {:.0f} s in every "
                            "trial; a longer --budget tries it",
                            fill));
        return false;
    }

    bool improve_compute() {
        bool changed = false;
        // A kept change may leave nothing for others to gain, or let others gain.
        for (bool again = true; again && answer_.ended.empty();) {
            again = false;
            for (const Move& move :
                 led(compute_moves(facts_, contest_.settings(), contest_.rate().step_seconds))) {
                if (!is_worth_a_trial(move) || !attempt(move)) continue;
                changed = again = true;
                break;
            }
        }
        if (changed && input_matters()) take_bound();
        return changed;
    }

    [[nodiscard]] Circumstances circumstances(const Move& move) const {
        return {.most_gain = most_gain(move.relief, facts_, contest_.rate()),
                .batch = parse_number(value_of(contest_.settings(), "batch_size")).value_or(0)};
    }

    [[nodiscard]] bool is_worth_a_trial(const Move& move) const {
        // Keeps what was decided: going back gives nothing new.
        bool decided = std::ranges::all_of(
            move.change, [&](const auto& entry) { return answer_.best.contains(entry.first); });
        Circumstances now = circumstances(move);
        if (decided || now.most_gain < settings_.cause_least) return false;
        auto then = tried_.find(move.change);
        return then == tried_.end() || now.most_gain >= then->second.most_gain + kMoreToGain ||
               now.batch >= kOtherBatch * then->second.batch;
    }

    // A user who accumulates gradients has chosen the effective batch: a larger micro-batch keeps
    // it.
    [[nodiscard]] BatchLimits batch_limits() const {
        BatchLimits limits = settings_.batch;
        auto size = parse_integer(value_of(settings_.start, "batch_size"));
        auto steps = parse_integer(value_of(settings_.start, "gradient_accumulation_steps"));
        bool may_change = is_tunable("gradient_accumulation_steps");
        if (!limits.effective_batch && may_change && size && steps.value_or(1) > 1)
            limits.effective_batch = *size * *steps;
        if (samples_per_epoch_ > 0) {
            auto most = static_cast<std::int64_t>(static_cast<double>(samples_per_epoch_) /
                                                  kLeastStepsPerEpoch);
            limits.max = std::min(limits.max, most);
        }
        return limits;
    }

    bool improve_batch(bool is_first) {
        BatchLimits limits = batch_limits();
        bool may_grow = settings_.facts.level >= Level::training || limits.effective_batch;
        if (settings_.tune_batch && may_grow && !is_tunable("batch_size"))
            answer_.unreachable.insert("batch_size");
        if (!settings_.tune_batch || !is_tunable("batch_size") || !may_grow ||
            !contest_.may_go_on())
            return false;
        auto start = parse_integer(value_of(contest_.settings(), "batch_size"));
        if (!start) return false;
        std::map<std::string, TrialResult> probes;
        auto run = [&](const TrialRequest& wanted) {
            // The settings in force were measured already.
            if (wanted.settings.at("batch_size") == std::to_string(*start))
                return contest_.result();
            if (!contest_.may_go_on())
                return TrialResult{.outcome = TrialOutcome::not_run, .message = answer_.ended};
            Assignment change{{"batch_size", wanted.settings.at("batch_size")}};
            TrialResult result = contest_.trial(change, {.may_be_hopeless = true});
            contest_.tell(contest_.note("batch size", "a probe", change, result));
            return probes[change.at("batch_size")] = result;
        };
        limits.climb_only = !is_first;
        limits.max = std::max(*start, limits.max);
        BatchAnswer found = find_batch_size(*start, limits, answer_.best, run);
        std::int64_t size = found.size;
        bool is_other = size != 0 && size != *start;
        if (is_first || is_other) answer_.batch = std::move(found);
        if (!is_other) return false;
        for (Tried& tried : std::views::reverse(answer_.trials)) {
            bool chosen = tried.cause == "batch size" && tried.rate &&
                          tried.change.at("batch_size") == std::to_string(size);
            if (!chosen) continue;
            if (!contest_.is_better(tried, size < *start ? kLeastGainSmaller : 0)) {
                answer_.batch->why += fmt::format("; {} stays: the gain is too small", *start);
                return false;
            }
            tried.reason = answer_.batch->why;
            contest_.put_in_force(tried, probes.at(tried.change.at("batch_size")));
            if (limits.effective_batch)
                answer_.best["gradient_accumulation_steps"] =
                    std::to_string(answer_.batch->accumulation);
            if (input_matters()) take_bound();
            return true;
        }
        return false;
    }

    // Evaluations and checkpoints are pauses between steps: one trial of their own, then
    // arithmetic.
    void improve_pauses() {
        bool allowed = settings_.can_measure_pauses && facts_.level >= Level::training;
        if (!allowed || samples_per_epoch_ == 0 || !contest_.may_go_on()) return;
        TrialResult result = contest_.trial({}, {.again = true, .with_pauses = true});
        Pauses pauses = pauses_of(result.record);
        Tried& measured =
            contest_.note("pauses", "evaluation and checkpoint between steps", {}, result);
        measured.rate.reset();  // from a few steps only
        if (result.outcome == TrialOutcome::ok) measured.message = pauses_text(pauses);
        contest_.tell(measured);
        for (const LongerInterval& longer :
             longer_intervals(contest_.settings(), pauses, contest_.rate().per_second,
                              static_cast<double>(samples_per_epoch_), settings_.cause_least)) {
            Tried tried{.cause = longer.cause,
                        .reason = longer.reason,
                        .change = {{longer.key, longer.value}},
                        .message = "over whole epochs",
                        .ratio = longer.ratio,
                        .kept = longer.trade.empty()};
            if (tried.kept) {
                answer_.best[longer.key] = longer.value;
            } else {
                answer_.notes.push_back(
                    fmt::format("{}={} would give {:+.0f} % over whole epochs ({}); a trade-off "
                                "for you to decide: {}",
                                longer.key, longer.value, 100 * (longer.ratio - 1), longer.reason,
                                longer.trade));
            }
            answer_.trials.push_back(tried);
            contest_.tell(answer_.trials.back());
        }
    }

    // Tries two changes together if neither gained alone.
    void try_pair() {
        auto move = paired_move(facts_, contest_.settings());
        if (!move || !settings_.tune_batch || !answer_.ended.empty()) return;
        auto size = parse_integer(move->change.at("batch_size"));
        bool is_decided = std::ranges::any_of(
            move->change, [&](const auto& entry) { return answer_.best.contains(entry.first); });
        if (is_decided || !size || *size > batch_limits().max) return;
        (void)attempt(*move);
    }

    // On a CPU this comes last: the graph is for one batch size and takes long to build.
    void try_compiler() {
        auto move = compiler_move(settings_.facts, contest_.settings());
        if (!move || !answer_.ended.empty() || !settings_.facts.on_cpu) return;
        if (contest_.seconds_left() < kCompileSeconds) {
            answer_.notes.push_back(
                fmt::format("compile was not tried: building its graph takes about a minute, and "
                            "the search had {:.0f} s left; a longer --budget tries it",
                            contest_.seconds_left()));
            return;
        }
        (void)attempt(*move);
    }

    [[nodiscard]] std::string why_done() const {
        double share = input_share();
        if (share >= settings_.cause_least)
            return fmt::format(
                "the loader still costs {:.0f} %, and nothing that was tried makes it faster here",
                100 * share);
        std::string done =
            fmt::format("no cause above {:.0f} % is left", 100 * settings_.cause_least);
        const std::optional<double>& busy = contest_.rate().device_busy_share;
        if (facts_.busy_is_exact && busy && 1 - *busy >= kIdleDevice)
            done += fmt::format(
                " that a setting could remove: the device is busy {:.0f} % of the time, because "
                "the host starts its kernels one by one",
                100 * *busy);
        return done;
    }

    const SearchSettings& settings_;
    Facts facts_;
    SearchAnswer answer_;
    Contest contest_;
    std::optional<double> bound_;         // for the settings in force
    std::int64_t samples_per_epoch_ = 0;  // 0: unknown
    bool told_of_cache_ = false;
    std::set<Assignment> seen_;
    std::map<Assignment, Circumstances> tried_;  // the last time each change was tried
};

}  // namespace

SearchAnswer search(const SearchSettings& settings, const RunTrial& run) {
    return Search(settings, run).find();
}

}  // namespace saturate
