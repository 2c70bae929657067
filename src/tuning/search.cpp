// SPDX-License-Identifier: Apache-2.0
#include "tuning/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "tuning/command.h"

namespace saturate {

namespace {

// A gain below this is not worth another setting in the file.
constexpr double kLeastGain = 0.02;
// A smaller batch takes the optimisation another way: it must be worth that.
constexpr double kLeastGainSmaller = 0.05;
// Building the graph that `compile` runs takes about a minute on a CPU.
constexpr double kCompileSeconds = 45;
constexpr double kNoEnd = 1e9;

struct How {
    bool without_loader = false;
    bool again = false;
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
            bool changed = improve_input();
            changed |= improve_compute();
            if (round == 0) changed |= improve_batch();
            if (!changed) break;
        }
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
                             .again = how.again};
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
        TrialResult result = trial(move.change);
        if (!may_go_on() && !result.ok()) return false;  // stopped in the middle of it
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
                in_force_ = result;
            }
        }
        answer_.trials.back() = tried;
        tell(tried);
        return tried.kept;
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
                if (!attempt(move)) continue;
                changed = again = true;
                break;
            }
        }
        return changed;
    }

    bool improve_compute() {
        bool changed = false;
        for (const Move& move : compute_moves(facts_, in_force(), now_->step_seconds)) {
            // What was decided stays: a move back is no news.
            bool decided = std::ranges::all_of(
                move.change, [&](const auto& entry) { return answer_.best.contains(entry.first); });
            if (!decided) changed |= attempt(move);
        }
        if (changed && input_matters()) take_bound();
        return changed;
    }

    bool improve_batch() {
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
            TrialResult result = trial({{"batch_size", wanted.settings.at("batch_size")}});
            Assignment change{{"batch_size", wanted.settings.at("batch_size")}};
            tell(note("batch size", "a probe", change, result));
            return result;
        };
        answer_.batch = find_batch_size(*start, settings_.batch, answer_.best, run);
        std::int64_t size = answer_.batch->size;
        if (size == 0 || size == *start) return false;
        double least = size < *start ? kLeastGainSmaller : kLeastGain;
        for (Tried& tried : answer_.trials) {
            bool chosen = tried.cause == "batch size" && tried.rate &&
                          tried.change.at("batch_size") == std::to_string(size);
            if (!chosen) continue;
            if (tried.rate->median < (1 + least) * now_->median) {
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
    std::optional<double> bound_;  // of what is in force
    TrialResult in_force_;         // measured with what is in force
    std::set<Assignment> seen_;
};

}  // namespace

std::vector<KeptSetting> kept_settings(const SearchAnswer& answer) {
    std::vector<KeptSetting> out;
    for (const auto& [key, value] : answer.best) {
        KeptSetting kept{.key = key, .value = value};
        for (const Tried& tried : answer.trials) {
            if (!tried.kept || !tried.change.contains(key)) continue;
            const std::string& first = tried.change.begin()->first;
            if (first == key)
                kept.ratio = kept.ratio.value_or(1) * tried.ratio;
            else
                kept.with = first;
            kept.reason = tried.reason;
            kept.rate = tried.rate->median;
        }
        if (kept.reason.empty() && answer.best.contains("batch_size")) {
            kept.with = "batch_size";
            kept.reason = "follows the batch size";
        }
        out.push_back(std::move(kept));
    }
    return out;
}

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
