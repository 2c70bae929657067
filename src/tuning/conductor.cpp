// SPDX-License-Identifier: Apache-2.0
#include "tuning/conductor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "tuning/budget.h"
#include "tuning/command.h"
#include "tuning/pauses.h"
#include "tuning/training_guard.h"

namespace saturate {

namespace {

constexpr double kLeastBudgetSeconds = 20;

bool tells_losses(const TuneRequest& request) {
    return request.job.is_ours() && !request.is_simulated();
}

// Safe settings and intervals between pauses do not change a step.
bool leaves_losses(const std::string& key) {
    const SettingInfo* info = find_setting(key);
    return info && (info->level == Level::safe || is_interval(key));
}

bool is_only_safe(const Assignment& change) {
    return std::ranges::all_of(change,
                               [](const auto& entry) { return leaves_losses(entry.first); });
}

class Conductor {
  public:
    Conductor(const TuneRequest& request, const TuneWorld& world)
        : request_(request), world_(world), budget_(request.budget_seconds, guards()) {}

    TuneAnswer run() {
        TuneAnswer answer;
        std::string busy = world_.busy ? world_.busy() : "";
        answer.search = search(search_settings(), [this](const TrialRequest& wanted) {
            return trial(wanted, "search");
        });
        if (!busy.empty()) answer.search.notes.insert(answer.search.notes.begin(), busy);
        if (answer.search.baseline) {
            say_unreachable(answer.search);
            say_too_short(answer.search);
            follow_batch(answer.search);
            if (std::ranges::any_of(answer.search.best,
                                    [](const auto& entry) { return is_interval(entry.first); }))
                answer.search.notes.emplace_back(
                    "the proof covers the steps only: what longer intervals save comes on top");
            if (!answer.search.best.empty() && !stopped()) guard(answer);
            if (!answer.search.best.empty() && !stopped()) prove_it(answer);
        } else if (!stopped()) {
            throw_no_baseline(answer.search);
        }
        answer.interrupted = stopped();
        answer.seconds = seconds();
        return answer;
    }

  private:
    [[nodiscard]] double seconds() const { return world_.seconds(); }
    [[nodiscard]] bool stopped() const { return world_.is_stopped(); }
    [[nodiscard]] bool is_simulated() const { return request_.is_simulated(); }

    [[nodiscard]] SearchSettings search_settings() {
        SearchSettings settings{
            .facts = request_.facts, .start = request_.start, .batch = request_.batch};
        if (!request_.job.is_ours()) {
            settings.tunable = request_.file
                                   ? request_.file->tunable()
                                   : tunable_settings(request_.job.command, request_.facts.on_cpu);
            settings.can_leave_loader_out = false;
        }
        settings.can_measure_pauses = request_.job.is_ours() && !is_simulated();
        settings.trial_seconds = budget_.trial_seconds();
        settings.is_stopped = [this] { return stopped(); };
        settings.seconds_left = [this] { return budget_.left_for_search(seconds()); };
        settings.on_trial = [this](const Tried& tried) { world_.on_trial(++shown_, tried); };
        return settings;
    }

    // Constants of a script and settings in a file that it reads cannot be changed from outside.
    void say_unreachable(SearchAnswer& found) const {
        if (found.unreachable.empty() || request_.job.is_ours()) return;
        std::vector<std::string> names(found.unreachable.begin(), found.unreachable.end());
        std::string where = request_.file ? request_.file->name() + " has no key for"
                                          : std::string("the command gives no way to change");
        found.notes.push_back(
            fmt::format("not tried, because {} {}; saturate fix -- {} can change sources and files",
                        where, join(names, ", "), join(request_.job.command, " ")));
    }

    // The search leaves time for a proof. If it found nothing to prove, that time looks unused.
    void say_too_short(SearchAnswer& found) const {
        if (!found.best.empty() || stopped() || budget_.left_for_search(seconds()) > 0) return;
        found.notes.push_back(fmt::format(
            "not everything was tried: one more trial would leave no time for its proof; "
            "--budget {} tries more",
            budget_.longer()));
    }

    [[noreturn]] void throw_no_baseline(const SearchAnswer& found) const {
        std::string log = (request_.folder / "trial-1.log").string();
        if (!found.trials.empty() && found.trials[0].outcome == TrialOutcome::too_slow) {
            throw UserError(
                {.where = {request_.job.config},
                 .found = fmt::format("--budget is {:.0f} s, and the first trial made {}",
                                      request_.budget_seconds, found.trials[0].message),
                 .expected = "time for at least five steps in each of a dozen trials",
                 .fix = "--budget 30m, or a smaller batch_size"});
        }
        throw UserError({.where = {request_.job.config},
                         .found = found.ended,
                         .expected = "a job that runs without any change",
                         .fix = fmt::format("read {}", log)});
    }

    [[nodiscard]] Assignment in_force(const Assignment& over) const {
        Assignment out = request_.start;
        for (const auto& [key, value] : over) out[key] = value;
        return out;
    }

    TrialResult trial(const TrialRequest& wanted, std::string_view stage) {
        TrialResult result = world_.run(wanted, stage);
        budget_.see(result);
        const Json& optimizers = result.record.python["optimizers"];
        if (optimizer_.empty() && !optimizers.items().empty())
            optimizer_ = optimizers.items()[0]["type"].string().value_or("");
        return result;
    }

    // If the batch changed, the learning rate follows by the optimizer's rule. A script need not
    // name its optimizer in a file: the watched run saw it.
    void follow_batch(SearchAnswer& found) const {
        auto size = found.best.find("batch_size");
        if (size == found.best.end() || found.best.contains("gradient_accumulation_steps")) return;
        auto old_rate = parse_number(value_of(request_.start, "learning_rate"));
        auto old_size = parse_number(value_of(request_.start, "batch_size"));
        std::string name = value_of(request_.start, "optimizer");
        LearningRateRule rule = rule_for(lower(name.empty() ? optimizer_ : name));
        bool may_follow = !request_.file || request_.file->tunable().contains("learning_rate");
        if (!old_rate || !old_size || rule == LearningRateRule::none || !may_follow) {
            found.notes.push_back(
                fmt::format("the batch size changes and the learning rate stays the same: {}",
                            rule == LearningRateRule::none ? "no rule is known for the optimizer"
                                                           : "where it is set was not found"));
            return;
        }
        double ratio = *parse_number(size->second) / *old_size;
        double rate = scaled_learning_rate(*old_rate, ratio, rule);
        found.best["learning_rate"] = fmt::format("{:.3g}", rate);
        found.notes.push_back(
            fmt::format("the learning rate follows the batch by the {} rule: {} -> {:.3g}",
                        rule_name(rule), *old_rate, rate));
    }

    [[nodiscard]] bool guards() const {
        return tells_losses(request_) && request_.facts.level > Level::safe;
    }

    // Compares losses over the same number of samples: two unchanged runs and one changed run.
    void guard(TuneAnswer& answer) {
        if (!needs_loss_guard(request_, answer.search.best)) return;
        double batch = parse_number(value_of(request_.start, "batch_size")).value_or(32);
        double samples = std::max(
            kGuardSteps * batch,
            std::min(answer.search.baseline->per_second * budget_.guard_seconds(), 400 * batch));
        auto curve = [&](const Assignment& settings, std::uint64_t seed) {
            double size = parse_number(value_of(in_force(settings), "batch_size")).value_or(batch);
            TrialRequest wanted{.settings = settings,
                                .steps = std::max(4L, std::lround(samples / size))};
            wanted.seed = seed;
            wanted.settings["log_interval"] = "1";
            // The guard must not use up the proof's time: a run that takes far too long is ended.
            wanted.seconds_max =
                std::min(2.5 * budget_.guard_run_seconds(), budget_.most_for_run(seconds()));
            return loss_curve(trial(wanted, "loss").record.steps);
        };
        world_.on_line(fmt::format("comparing losses over {:.0f} samples, three runs", samples));
        std::vector<LossCurve> baselines{curve({}, 1), curve({}, 2)};
        answer.guard = guard_loss(baselines, curve(answer.search.best, 1));
        if (answer.guard->verdict != GuardVerdict::differs &&
            answer.guard->verdict != GuardVerdict::nonfinite)
            return;
        // The loss differs: the settings that change the optimisation path go back first.
        Assignment kept;
        for (const auto& [key, value] : answer.search.best) {
            const SettingInfo* info = find_setting(key);
            if (info && (info->level <= Level::numerics || is_interval(key))) kept[key] = value;
        }
        if (kept.size() < answer.search.best.size()) {
            answer.search.notes.push_back(
                fmt::format("{}: {}", what_is_left_out(answer.search, kept), answer.guard->text));
            answer.search.best = kept;
            if (is_only_safe(kept)) return;
            answer.guard = guard_loss(baselines, curve(kept, 1));
            if (answer.guard->verdict == GuardVerdict::holds ||
                answer.guard->verdict == GuardVerdict::unknown)
                return;
        }
        answer.search.notes.push_back("numerics stay unchanged: " + answer.guard->text);
        std::erase_if(answer.search.best,
                      [](const auto& entry) { return !leaves_losses(entry.first); });
    }

    // "batch_size=512 is left out, though 1.66 times as fast"
    [[nodiscard]] static std::string what_is_left_out(const SearchAnswer& found,
                                                      const Assignment& kept) {
        std::string out;
        double ratio = 1;
        for (const KeptSetting& setting : kept_settings(found)) {
            if (kept.contains(setting.key)) continue;
            out += fmt::format("{}{}={}", out.empty() ? "" : ", ", setting.key, setting.value);
            ratio *= setting.ratio.value_or(1);
        }
        return fmt::format("{} is left out, though {:.2f} times as fast", out, ratio);
    }

    void prove_it(TuneAnswer& answer) {
        world_.on_line("proving it: before and after take turns, at least five pairs");
        std::vector<LossCurve> losses_before, losses_after;
        auto measure = [&](const Assignment& settings, DeviceUse& use) -> std::optional<double> {
            TrialRequest wanted{.settings = settings, .seconds = budget_.proof_seconds()};
            wanted.seconds_max = budget_.most_for_run(seconds());
            TrialResult result = trial(wanted, "proof");
            if (!result.ok()) return std::nullopt;
            add_use(use, result.record, result.samples_per_second->dropped);
            if (!request_.job.is_ours())
                (settings.empty() ? losses_before : losses_after)
                    .push_back(losses_of(result.record));
            return result.samples_per_second->per_second;
        };
        ProofSettings settings{.pairs_max = request_.proof_pairs_max};
        auto is_time_up = [this] { return !budget_.has_time_for_proof_run(seconds()); };
        // After five pairs, a pair begins only if there is time for both of its runs.
        settings.is_time_up = [this] { return !budget_.has_time_for_more(seconds()); };
        answer.proof = prove(
            settings, [&] { return measure({}, answer.before); },
            [&] { return measure(answer.search.best, answer.after); },
            [&] { return stopped() || is_time_up(); });
        if (!answer.proof->has_interval() && !stopped()) answer.proof->longer = budget_.longer();
        // For a user's command, compares the losses that the runs of the proof showed.
        if (!is_only_safe(answer.search.best) && !losses_after.empty())
            answer.guard = guard_loss(losses_before, losses_after.back());
        if (answer.guard) answer.proof->loss_guard = answer.guard->text;
        if (is_simulated())
            answer.proof->loss_guard = "not compared: a simulated device learns nothing";
    }

    const TuneRequest& request_;
    const TuneWorld& world_;
    TuneBudget budget_;
    int shown_ = 0;          // lines of the search
    std::string optimizer_;  // class of a script's optimizer, as seen in a run
};

}  // namespace

bool needs_loss_guard(const TuneRequest& request, const Assignment& change) {
    return tells_losses(request) && !is_only_safe(change);
}

void check_budget(double seconds) {
    if (seconds >= kLeastBudgetSeconds) return;
    throw UserError(
        {.found = fmt::format("--budget is {:.0f} s", seconds),
         .expected = fmt::format("{:.0f} s or more: a trial takes seconds", kLeastBudgetSeconds),
         .fix = "--budget 5m"});
}

TuneAnswer conduct(const TuneRequest& request, const TuneWorld& world) {
    check_budget(request.budget_seconds);
    return Conductor(request, world).run();
}

Json to_json(const TuneAnswer& answer) {
    Json out = to_json(answer.search);
    out.set("interrupted", answer.interrupted);
    out.set("seconds", answer.seconds);
    if (answer.guard) out.set("loss_guard", to_json(*answer.guard));
    if (answer.proof) {
        out.set("proof", to_json(*answer.proof));
        out.set("use", Json::object(
                           {{"before", to_json(answer.before)}, {"after", to_json(answer.after)}}));
    }
    return out;
}

}  // namespace saturate
