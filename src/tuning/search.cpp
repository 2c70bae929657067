// SPDX-License-Identifier: Apache-2.0
#include "tuning/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"

namespace saturate {

namespace {

// A gain below this is not worth another setting in the file.
constexpr double kLeastGain = 0.02;

class Search {
  public:
    Search(const SearchSettings& settings, const RunTrial& run) : settings_(settings), run_(run) {}

    SearchAnswer find() {
        if (!take_baseline()) return std::move(answer_);
        take_bound();
        // Loader, device, batch, and round again: each may move the cause to another.
        for (int round = 0; round < 3 && answer_.ended.empty(); ++round) {
            bool changed = improve_input();
            changed |= improve_compute();
            if (round == 0) changed |= improve_batch();
            if (!changed) break;
        }
        if (answer_.ended.empty()) answer_.ended = why_done();
        answer_.best_rate = now_;
        return std::move(answer_);
    }

  private:
    [[nodiscard]] Assignment in_force() const {
        Assignment out = settings_.start;
        for (const auto& [key, value] : answer_.best) out[key] = value;
        return out;
    }

    bool may_go_on() {
        if (!answer_.ended.empty()) return false;
        if (settings_.is_stopped && settings_.is_stopped())
            answer_.ended = "stopped: the best so far";
        if (settings_.seconds_since_start() >= settings_.budget_seconds)
            answer_.ended = "the budget is spent";
        return answer_.ended.empty();
    }

    TrialResult trial(const Assignment& change, bool without_loader = false) {
        TrialRequest request{.settings = answer_.best, .without_loader = without_loader};
        request.seconds = settings_.trial_seconds;
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
        if (now_->trend > 0.1)
            answer_.notes.push_back(fmt::format(
                "the job gets slower as it runs ({:.0f} % over the trial): rates are of its start",
                100 * now_->trend));
        return true;
    }

    // The most that the loader can give: printed first, and the reason to leave it alone.
    void take_bound() {
        if (!may_go_on()) return;
        TrialResult result = trial({}, true);
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

    // What the loader costs: by the bound where it is known, and never less than the wait seen.
    [[nodiscard]] double input_share() const {
        double share = now_->input_wait_share;
        if (bound_ && *bound_ > now_->median) share = std::max(share, 1 - now_->median / *bound_);
        return share;
    }

    // True when the change is kept. A close call is decided by running both once more, in turns.
    bool attempt(const Move& move) {
        Assignment wish = in_force();
        for (const auto& [key, value] : move.change) wish[key] = value;
        if (!seen_.insert(wish).second || !may_go_on()) return false;
        TrialResult result = trial(move.change);
        Tried tried = note(move.cause, move.reason, move.change, result);
        if (result.ok()) {
            Rate rate = *result.samples_per_second;
            double gain = rate.median / now_->median - 1;
            double noise = std::max({kLeastGain, now_->spread(), rate.spread()});
            tried.kept = gain > noise;
            if (gain > 0 && gain < 3 * noise && may_go_on())
                tried.kept = holds_again(move, rate, tried);
            if (tried.kept) {
                for (const auto& [key, value] : move.change) answer_.best[key] = value;
                now_ = rate;
            }
        }
        answer_.trials.back() = tried;
        tell(tried);
        return tried.kept;
    }

    bool holds_again(const Move& move, Rate& rate, Tried& tried) {
        TrialResult old = trial({});
        TrialResult candidate = trial(move.change);
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
            for (const Move& move :
                 loader_moves(settings_.facts, in_force(), *now_, bound_.value_or(0))) {
                if (!attempt(move)) continue;
                changed = again = true;
                break;
            }
        }
        return changed;
    }

    bool improve_compute() {
        bool changed = false;
        for (const Move& move : compute_moves(settings_.facts, in_force()))
            changed |= attempt(move);
        if (changed) take_bound();
        return changed;
    }

    bool improve_batch() {
        bool may_grow = settings_.facts.level >= Level::training || settings_.batch.effective_batch;
        if (!settings_.tune_batch || !may_grow || !may_go_on()) return false;
        auto start = parse_integer(value_of(in_force(), "batch_size"));
        if (!start) return false;
        auto run = [this](const TrialRequest& wanted) {
            if (!may_go_on())
                return TrialResult{.outcome = TrialOutcome::failed, .message = answer_.ended};
            TrialRequest request = wanted;
            request.seconds = settings_.trial_seconds;
            TrialResult result = run_(request);
            Assignment change{{"batch_size", request.settings.at("batch_size")}};
            tell(note("batch size", "a probe", change, result));
            return result;
        };
        answer_.batch = find_batch_size(*start, settings_.batch, answer_.best, run);
        if (answer_.batch->size == 0 || answer_.batch->size == *start) return false;
        for (Tried& tried : answer_.trials) {
            bool chosen = tried.cause == "batch size" && tried.rate &&
                          tried.change.at("batch_size") == std::to_string(answer_.batch->size);
            if (!chosen || tried.rate->median < (1 + kLeastGain) * now_->median) continue;
            tried.kept = true;
            answer_.best["batch_size"] = std::to_string(answer_.batch->size);
            if (answer_.batch->accumulation > 1)
                answer_.best["gradient_accumulation_steps"] =
                    std::to_string(answer_.batch->accumulation);
            now_ = *tried.rate;
            take_bound();
            return true;
        }
        return false;
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
    SearchAnswer answer_;
    std::optional<Rate> now_;
    std::optional<double> bound_;  // of what is in force
    std::set<Assignment> seen_;
};

}  // namespace

SearchAnswer search(const SearchSettings& settings, const RunTrial& run) {
    return Search(settings, run).find();
}

Json to_json(const SearchAnswer& answer) {
    auto rate = [](const std::optional<Rate>& r) {
        if (!r) return Json();
        return Json::object(
            {{"median", r->median}, {"low", r->low}, {"high", r->high}, {"n", r->n}});
    };
    auto object = [](const Assignment& settings) {
        Json out = Json::object();
        for (const auto& [key, value] : settings) out.set(key, value);
        return out;
    };
    Json trials = Json::array();
    for (const Tried& tried : answer.trials) {
        trials.add(Json::object({{"cause", tried.cause},
                                 {"reason", tried.reason},
                                 {"change", object(tried.change)},
                                 {"outcome", std::string(outcome_name(tried.outcome))},
                                 {"message", tried.message},
                                 {"samples_per_second", rate(tried.rate)},
                                 {"ratio", tried.ratio},
                                 {"kept", tried.kept},
                                 {"from_cache", tried.from_cache},
                                 {"seconds", tried.seconds}}));
    }
    Json out = Json::object({{"baseline", rate(answer.baseline)},
                             {"best", rate(answer.best_rate)},
                             {"upper_bound", answer.upper_bound},
                             {"settings", object(answer.best)},
                             {"trials", trials},
                             {"ended", answer.ended},
                             {"notes", Json::array_of(answer.notes)}});
    if (answer.batch) out.set("batch", to_json(*answer.batch));
    return out;
}

}  // namespace saturate
