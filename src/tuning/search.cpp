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
#include "tuning/command.h"
#include "tuning/pauses.h"

namespace saturate {

namespace {

// A gain below this is not worth another setting in the file.
constexpr double kLeastGain = 0.02;
// Two processes with the same settings differ by about this, however steady each is.
constexpr double kLeastNoise = 0.01;
// A candidate whose every window stays below this share of what is in force is given up.
constexpr double kHopeless = 0.9;
constexpr double kFarBelow =
    0.3;                        // a loss that is more likely another time than another setting ...
constexpr double kNoisy = 0.1;  // ... where rates vary so much within one run
// A change that gained nothing is tried again when it could gain so much more of the step than
// then, or with a batch so many times as large.
constexpr double kMoreToGain = 0.05;
constexpr double kOtherBatch = 4;
// An epoch has at least so many steps, else the batch is all that training sees.
constexpr double kLeastStepsPerEpoch = 8;
// A smaller batch takes the optimisation another way: it must be worth that.
constexpr double kLeastGainSmaller = 0.05;
// Building the graph that `compile` runs takes about a minute on a CPU.
constexpr double kCompileSeconds = 45;
constexpr double kFillShare = 0.1;  // of the time left, that filling a cache may take
constexpr double kNoEnd = 1e9;

struct How {
    bool without_loader = false;
    bool again = false;
    bool may_be_hopeless = false;
    bool with_pauses = false;
};

// Under which circumstances a change was tried.
struct Circumstances {
    double most_gain = 1;
    double batch = 0;
};

class Search {
  public:
    Search(const SearchSettings& settings, const RunTrial& run)
        : settings_(settings), run_(run), facts_(settings.facts), start_(settings.start) {}

    SearchAnswer find() {
        if (!take_baseline()) return std::move(answer_);
        take_bound();
        // Loader, device, batch, and round again: each may move the cause to another.
        for (int round = 0; round < 3 && answer_.ended.empty(); ++round) {
            bool input = improve_input();
            bool compute = improve_compute();
            bool batch = (round == 0 || compute) && improve_batch(round == 0);
            if (!input && !compute && !batch) break;
        }
        improve_pauses();
        try_compiler();
        if (answer_.ended.empty()) answer_.ended = why_done();
        answer_.best_rate = now_;
        return std::move(answer_);
    }

  private:
    [[nodiscard]] Assignment in_force() const {
        Assignment out = start_;
        for (const auto& [key, value] : answer_.best) out[key] = value;
        return out;
    }

    bool may_go_on() {
        if (!answer_.ended.empty()) return false;
        if (settings_.is_stopped && settings_.is_stopped())
            answer_.ended = "stopped: the best so far";
        if (seconds_left() <= 0) answer_.ended = "the budget is spent";
        return answer_.ended.empty();
    }
    [[nodiscard]] double seconds_left() const {
        return settings_.seconds_left ? settings_.seconds_left() : kNoEnd;
    }

    TrialResult trial(const Assignment& change, How how = {}) {
        TrialRequest request{.settings = answer_.best,
                             .without_loader = how.without_loader,
                             .seconds = settings_.trial_seconds,
                             .again = how.again,
                             .with_pauses = how.with_pauses};
        if (how.may_be_hopeless && now_) request.hopeless_below = kHopeless * now_->median;
        // One trial may not eat what is left for the others.
        request.seconds_max = std::clamp(0.6 * seconds_left(), 20.0, 300.0);
        for (const auto& [key, value] : change) request.settings[key] = value;
        return run_(request);
    }

    Tried& note(std::string cause, std::string reason, const Assignment& change,
                const TrialResult& result) {
        Tried tried{.cause = std::move(cause),
                    .reason = std::move(reason),
                    .change = change,
                    .outcome = result.outcome,
                    .message = result.message,
                    .rate = result.samples_per_second,
                    .from_cache = result.from_cache,
                    .seconds = result.seconds};
        if (tried.rate && now_) tried.ratio = tried.rate->median / now_->median;
        answer_.trials.push_back(std::move(tried));
        return answer_.trials.back();
    }

    void tell(const Tried& tried) const {
        if (settings_.on_trial) settings_.on_trial(tried);
    }

    bool take_baseline() {
        TrialResult result = trial({});
        Tried& tried = note("baseline", "as the configuration stands", {}, result);
        tried.kept = result.ok();
        tell(tried);
        if (!result.ok()) {
            answer_.ended =
                fmt::format("the configuration itself does not run: {}",
                            result.message.empty() ? std::string(outcome_name(result.outcome))
                                                   : result.message);
            return false;
        }
        now_ = answer_.baseline = *result.samples_per_second;
        in_force_ = result;
        samples_per_epoch_ = result.samples_per_epoch.value_or(0);
        learn(result.record.python);
        if (now_->n >= 6 && now_->trend > 0.1)
            answer_.notes.push_back(fmt::format(
                "the job gets slower as it runs ({:.0f} % over the trial): rates are of its start",
                100 * now_->trend));
        return true;
    }

    // What a Python script's own code says needs no --set.
    void learn(const Json& python) {
        if (!python.is_object()) return;
        ScriptFacts script = script_facts(python);
        for (const auto& [key, value] : script.values) start_.emplace(key, value);
        facts_.is_python = true;
        facts_.in_memory = script.in_memory;
    }

    // The most that the loader can give: printed first, and the reason to leave it alone.
    void take_bound() {
        if (!may_go_on()) return;
        // Without workers the wait is all that loading costs: no trial could tell more.
        double waited = now_->input_wait_share;
        bool is_all = value_of(in_force(), "num_workers") == "0" && waited < settings_.cause_least;
        if (is_all || !settings_.can_leave_loader_out) {
            bound_ = now_->median / std::max(0.01, 1 - waited);
            if (!answer_.upper_bound) answer_.upper_bound = bound_;
            return;
        }
        TrialResult result = trial({}, {.without_loader = true});
        Tried& tried =
            note("upper bound", "one batch again and again, without the loader", {}, result);
        tell(tried);
        if (!result.ok()) {
            answer_.notes.push_back("the bound without the loader could not be measured: " +
                                    result.message);
            return;
        }
        bound_ = result.samples_per_second->median;
        if (!answer_.upper_bound) answer_.upper_bound = bound_;
    }

    // What the loader costs: by the bound where it is known. The host's wait is no measure of that
    // on a device that works on meanwhile.
    [[nodiscard]] double input_share() const {
        if (!bound_) return now_->input_wait_share;
        return *bound_ > now_->median ? 1 - now_->median / *bound_ : 0;
    }

    // A loader that is far from being the brake needs no other bound after each change.
    [[nodiscard]] bool input_matters() const {
        return now_->input_wait_share >= 0.01 || input_share() >= settings_.cause_least;
    }

    // True when the change is kept. A close call is decided by running both once more, in turns.
    bool attempt(const Move& move) {
        Assignment wish = in_force();
        for (const auto& [key, value] : move.change) wish[key] = value;
        bool allowed =
            settings_.tunable.empty() || std::ranges::all_of(move.change, [&](const auto& entry) {
                return settings_.tunable.contains(entry.first);
            });
        if (!allowed || !seen_.insert(wish).second || !may_go_on()) return false;
        tried_[move.change] = circumstances(move);
        TrialResult result = trial(move.change, {.may_be_hopeless = true});
        if (!may_go_on() && !result.ok()) return false;  // stopped in the middle of it
        Tried tried = note(move.cause, move.reason, move.change, result);
        if (result.ok()) {
            Rate rate = *result.samples_per_second;
            double gain = rate.median / now_->median - 1;
            double noise = std::max({kLeastNoise, now_->spread(), rate.spread()});
            if (gain < -kFarBelow && noise > kNoisy && may_go_on()) {
                gain = compared_anew(rate, tried);
                noise = std::max({kLeastNoise, now_->spread(), rate.spread()});
            }
            tried.kept = gain > kLeastGain + noise;
            bool is_close = gain > 0 && std::abs(gain - kLeastGain) <= noise;
            if (is_close && may_go_on()) tried.kept = holds_again(move, rate, tried);
            if (tried.kept) {
                for (const auto& [key, value] : move.change) answer_.best[key] = value;
                now_ = rate;
                in_force_ = result;
            }
        }
        answer_.trials.back() = tried;
        tell(tried);
        return tried.kept;
    }

    // On a machine that does other things, what is in force may have been measured at a better
    // time: it is measured again before a candidate is called so much slower.
    double compared_anew(const Rate& rate, Tried& tried) {
        TrialResult old = trial({}, {.again = true});
        tried.seconds += old.seconds;
        if (old.ok()) now_ = *old.samples_per_second;
        tried.ratio = rate.median / now_->median;
        return tried.ratio - 1;
    }

    bool holds_again(const Move& move, Rate& rate, Tried& tried) {
        TrialResult old = trial({}, {.again = true});
        TrialResult candidate = trial(move.change, {.again = true});
        tried.seconds += old.seconds + candidate.seconds;
        if (!old.ok() || !candidate.ok()) return false;
        double before = (now_->median + old.samples_per_second->median) / 2;
        double after = (rate.median + candidate.samples_per_second->median) / 2;
        rate.median = after;
        now_->median = before;
        tried.ratio = after / before;
        bool better_both = candidate.samples_per_second->median > old.samples_per_second->median;
        return better_both && after > (1 + kLeastGain) * before;
    }

    bool improve_input() {
        bool changed = false;
        // Bounded: every attempt is another assignment, and the moves are few.
        for (bool again = true;
             again && answer_.ended.empty() && input_share() >= settings_.cause_least;) {
            again = false;
            for (const Move& move : loader_moves(facts_, in_force(), *now_, bound_.value_or(0))) {
                if (!has_time_for(move) || !attempt(move)) continue;
                changed = again = true;
                break;
            }
        }
        return changed;
    }

    // Every run with a cache fills it first, which takes an epoch.
    bool has_time_for(const Move& move) {
        if (!move.change.contains("cache")) return true;
        double fill = static_cast<double>(samples_per_epoch_) / now_->median;
        if (fill <= kFillShare * seconds_left()) return true;
        if (!std::exchange(told_of_cache_, true))
            answer_.notes.push_back(
                fmt::format("cache=ram was not tried: filling it takes an epoch, {:.0f} s in every "
                            "trial; a longer --budget tries it",
                            fill));
        return false;
    }

    bool improve_compute() {
        bool changed = false;
        // Each change that is kept may leave others nothing to gain, or give them something.
        for (bool again = true; again && answer_.ended.empty();) {
            again = false;
            for (const Move& move : compute_moves(facts_, in_force(), now_->step_seconds)) {
                if (!is_worth_a_trial(move) || !attempt(move)) continue;
                changed = again = true;
                break;
            }
        }
        if (changed && input_matters()) take_bound();
        return changed;
    }

    [[nodiscard]] Circumstances circumstances(const Move& move) const {
        return {.most_gain = most_gain(move.relief, facts_, *now_),
                .batch = parse_number(value_of(in_force(), "batch_size")).value_or(0)};
    }

    [[nodiscard]] bool is_worth_a_trial(const Move& move) const {
        // What was decided stays: a move back is no news.
        bool decided = std::ranges::all_of(
            move.change, [&](const auto& entry) { return answer_.best.contains(entry.first); });
        Circumstances now = circumstances(move);
        if (decided || now.most_gain < settings_.cause_least) return false;
        auto then = tried_.find(move.change);
        return then == tried_.end() || now.most_gain >= then->second.most_gain + kMoreToGain ||
               now.batch >= kOtherBatch * then->second.batch;
    }

    bool improve_batch(bool is_first) {
        bool may_grow = settings_.facts.level >= Level::training || settings_.batch.effective_batch;
        bool allowed = settings_.tunable.empty() || settings_.tunable.contains("batch_size");
        if (!settings_.tune_batch || !allowed || !may_grow || !may_go_on()) return false;
        auto start = parse_integer(value_of(in_force(), "batch_size"));
        if (!start) return false;
        auto run = [&](const TrialRequest& wanted) {
            // What is in force was measured already.
            if (wanted.settings.at("batch_size") == std::to_string(*start)) return in_force_;
            if (!may_go_on())
                return TrialResult{.outcome = TrialOutcome::not_run, .message = answer_.ended};
            Assignment change{{"batch_size", wanted.settings.at("batch_size")}};
            TrialResult result = trial(change, {.may_be_hopeless = true});
            tell(note("batch size", "a probe", change, result));
            return result;
        };
        BatchLimits limits = settings_.batch;
        limits.climb_only = !is_first;
        if (samples_per_epoch_ > 0) {
            auto most = static_cast<std::int64_t>(static_cast<double>(samples_per_epoch_) /
                                                  kLeastStepsPerEpoch);
            limits.max = std::max(*start, std::min(limits.max, most));
        }
        BatchAnswer found = find_batch_size(*start, limits, answer_.best, run);
        std::int64_t size = found.size;
        bool is_other = size != 0 && size != *start;
        if (is_first || is_other) answer_.batch = std::move(found);
        if (!is_other) return false;
        double least = size < *start ? kLeastGainSmaller : kLeastGain;
        for (Tried& tried : std::views::reverse(answer_.trials)) {
            bool chosen = tried.cause == "batch size" && tried.rate &&
                          tried.change.at("batch_size") == std::to_string(size);
            if (!chosen) continue;
            bool holds = tried.rate->median >= (1 + least) * now_->median;
            if (holds && size < *start) {
                Rate rate = *tried.rate;
                holds =
                    holds_again({.change = tried.change}, rate, tried) && tried.ratio >= 1 + least;
                tried.rate = rate;
            }
            if (!holds) {
                answer_.batch->why +=
                    fmt::format("; {} stays, as that gains under {:.0f} %", *start, 100 * least);
                return false;
            }
            tried.kept = true;
            tried.reason = answer_.batch->why;
            answer_.best["batch_size"] = std::to_string(size);
            if (answer_.batch->accumulation > 1)
                answer_.best["gradient_accumulation_steps"] =
                    std::to_string(answer_.batch->accumulation);
            now_ = *tried.rate;
            if (input_matters()) take_bound();
            return true;
        }
        return false;
    }

    // Evaluations and checkpoints stand between the steps: their own trial, and arithmetic.
    void improve_pauses() {
        bool allowed = settings_.can_measure_pauses && facts_.level >= Level::training;
        if (!allowed || samples_per_epoch_ == 0 || !may_go_on()) return;
        TrialResult result = trial({}, {.again = true, .with_pauses = true});
        Pauses pauses = pauses_of(result.record);
        Tried& measured = note("pauses", "evaluation and checkpoint between steps", {}, result);
        measured.rate.reset();  // of a few steps
        if (result.outcome == TrialOutcome::ok) measured.message = pauses_text(pauses);
        tell(measured);
        for (const LongerInterval& longer :
             longer_intervals(in_force(), pauses, now_->median,
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
                answer_.notes.push_back(fmt::format(
                    "{}={} would give {:+.0f} % over whole epochs ({}); a trade that is yours: {}",
                    longer.key, longer.value, 100 * (longer.ratio - 1), longer.reason,
                    longer.trade));
            }
            answer_.trials.push_back(tried);
            tell(answer_.trials.back());
        }
    }

    // Last on a CPU: the graph is for one batch size and takes long to build.
    void try_compiler() {
        auto move = compiler_move(settings_.facts, in_force());
        if (!move || !answer_.ended.empty() || !settings_.facts.on_cpu) return;
        if (seconds_left() < kCompileSeconds) {
            answer_.notes.push_back(
                fmt::format("compile was not tried: building its graph takes about a minute, and "
                            "the search had {:.0f} s left; a longer --budget tries it",
                            seconds_left()));
            return;
        }
        (void)attempt(*move);
    }

    [[nodiscard]] std::string why_done() const {
        double share = input_share();
        if (share >= settings_.cause_least)
            return fmt::format(
                "the loader still costs {:.0f} %, and nothing tried makes it faster here",
                100 * share);
        return fmt::format("no cause above {:.0f} % is left", 100 * settings_.cause_least);
    }

    const SearchSettings& settings_;
    const RunTrial& run_;
    TuningFacts facts_;
    Assignment start_;
    SearchAnswer answer_;
    std::optional<Rate> now_;
    std::optional<double> bound_;         // of what is in force
    TrialResult in_force_;                // measured with what is in force
    std::int64_t samples_per_epoch_ = 0;  // 0: unknown
    bool told_of_cache_ = false;
    std::set<Assignment> seen_;
    std::map<Assignment, Circumstances> tried_;  // by change, the last time
};

}  // namespace

SearchAnswer search(const SearchSettings& settings, const RunTrial& run) {
    return Search(settings, run).find();
}

}  // namespace saturate
