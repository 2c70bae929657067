// SPDX-License-Identifier: Apache-2.0
#include "tuning/conductor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "tuning/command.h"
#include "tuning/pauses.h"

namespace saturate {

namespace {

constexpr double kLeastBudgetSeconds = 20;
constexpr int kProofRuns = 10;         // five pairs
constexpr double kGuardSteps = 8;      // of one run of the loss guard, at least
constexpr double kStartSeconds = 2.5;  // of a process that was not seen yet
constexpr double kReserveMost = 0.45;  // share of the budget that guard and proof may claim
constexpr double kOverrun = 0.1;       // share of the budget, ...
constexpr double kOverrunLeast = 30;   // ... or seconds: then the proof ends with what it has

class Conductor {
  public:
    Conductor(const TuneRequest& request, const TuneWorld& world)
        : request_(request), world_(world) {}

    TuneAnswer run() {
        TuneAnswer answer;
        answer.search = search(search_settings(), [this](const TrialRequest& wanted) {
            return trial(wanted, "search");
        });
        if (answer.search.baseline) {
            follow_batch(answer.search);
            if (std::ranges::any_of(answer.search.best,
                                    [](const auto& entry) { return is_interval(entry.first); }))
                answer.search.notes.emplace_back(
                    "the proof is of the steps: what longer intervals save comes on top");
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
            settings.tunable = tunable_settings(request_.job.command, request_.facts.on_cpu);
            settings.can_leave_loader_out = false;
        }
        settings.can_measure_pauses = request_.job.is_ours() && !is_simulated();
        settings.trial_seconds = std::clamp(request_.budget_seconds / 60, 0.4, 10.0);
        settings.is_stopped = [this] { return stopped(); };
        settings.seconds_left = [this] { return request_.budget_seconds - reserve() - seconds(); };
        settings.on_trial = [this](const Tried& tried) { world_.on_trial(++shown_, tried); };
        return settings;
    }

    // Measured time of one run of the proof.
    [[nodiscard]] double proof_seconds() const {
        return std::clamp(request_.budget_seconds / 40, 0.5, 4.0);
    }

    // ... and of the loss guard.
    [[nodiscard]] double guard_seconds() const {
        return std::clamp(request_.budget_seconds / 40, 0.5, 8.0);
    }

    // What guard and proof will take, by the slowest job in force so far.
    [[nodiscard]] double reserve() const {
        double one = start_seconds_ + std::max(proof_seconds(), 3 * step_seconds_) + 0.5;
        double all = kProofRuns * one;
        if (guards())
            all += 3 * (start_seconds_ + std::max(guard_seconds(), kGuardSteps * step_seconds_));
        return std::min(all, kReserveMost * request_.budget_seconds);
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
                         .expected = "a job that runs as it stands",
                         .fix = fmt::format("read {}", log)});
    }

    [[nodiscard]] Assignment in_force(const Assignment& over) const {
        Assignment out = request_.start;
        for (const auto& [key, value] : over) out[key] = value;
        return out;
    }

    TrialResult trial(const TrialRequest& wanted, std::string_view stage) {
        TrialResult result = world_.run(wanted, stage);
        see(result);
        return result;
    }

    // How long a start and a step take: for the reserve.
    void see(const TrialResult& result) {
        if (!result.samples_per_second) return;
        const Rate& rate = *result.samples_per_second;
        if (shown_ == 0) step_seconds_ = rate.step_seconds;
        if (result.from_cache) return;
        double steps = static_cast<double>(rate.steps + rate.dropped) * rate.step_seconds;
        start_seconds_ = std::clamp(result.seconds - steps, 0.5, 20.0);
    }

    // Where the batch grew, the learning rate follows by the optimizer's rule.
    void follow_batch(SearchAnswer& found) const {
        auto size = found.best.find("batch_size");
        if (size == found.best.end() || found.best.contains("gradient_accumulation_steps")) return;
        auto old_rate = parse_number(value_of(request_.start, "learning_rate"));
        auto old_size = parse_number(value_of(request_.start, "batch_size"));
        LearningRateRule rule = rule_for(lower(value_of(request_.start, "optimizer")));
        if (!old_rate || !old_size || rule == LearningRateRule::none) return;
        double ratio = *parse_number(size->second) / *old_size;
        double rate = scaled_learning_rate(*old_rate, ratio, rule);
        found.best["learning_rate"] = fmt::format("{:.3g}", rate);
        found.notes.push_back(
            fmt::format("the learning rate follows the batch by the {} rule: {} -> {:.3g}",
                        rule_name(rule), *old_rate, rate));
    }

    // Intervals between pauses change no step.
    [[nodiscard]] static bool leaves_losses(const std::string& key) {
        const SettingInfo* info = find_setting(key);
        return info && (info->level == Level::safe || is_interval(key));
    }
    [[nodiscard]] static bool is_only_safe(const Assignment& change) {
        return std::ranges::all_of(change,
                                   [](const auto& entry) { return leaves_losses(entry.first); });
    }

    // A simulated device learns nothing, and a command keeps its losses to itself.
    [[nodiscard]] bool guards() const {
        return request_.job.is_ours() && !is_simulated() && request_.facts.level > Level::safe;
    }

    // Over the same number of samples: twice as it was, once as it would be.
    void guard(TuneAnswer& answer) {
        if (!guards() || is_only_safe(answer.search.best)) return;
        double batch = parse_number(value_of(request_.start, "batch_size")).value_or(32);
        double samples =
            std::max(kGuardSteps * batch,
                     std::min(answer.search.baseline->per_second * guard_seconds(), 400 * batch));
        auto curve = [&](const Assignment& settings, std::uint64_t seed) {
            double size = parse_number(value_of(in_force(settings), "batch_size")).value_or(batch);
            TrialRequest wanted{.settings = settings,
                                .steps = std::max(4L, std::lround(samples / size))};
            wanted.seed = seed;
            wanted.settings["log_interval"] = "1";
            wanted.seconds_max = 0.15 * request_.budget_seconds;
            return loss_curve(trial(wanted, "loss").record.steps);
        };
        world_.on_line(fmt::format("comparing losses over {:.0f} samples, three runs", samples));
        std::vector<LossCurve> baselines{curve({}, 1), curve({}, 2)};
        answer.guard = guard_loss(baselines, curve(answer.search.best, 1));
        if (answer.guard->verdict != GuardVerdict::differs &&
            answer.guard->verdict != GuardVerdict::nonfinite)
            return;
        // The path of the optimisation is the first to go back to what it was.
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
        answer.search.notes.push_back("numerics are left as they were: " + answer.guard->text);
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
        world_.on_line("proving: before and after in turns, five pairs at least");
        auto measure = [this](const Assignment& settings, DeviceUse& use) -> std::optional<double> {
            TrialRequest wanted{.settings = settings, .seconds = proof_seconds()};
            wanted.seconds_max = 0.25 * request_.budget_seconds;
            TrialResult result = trial(wanted, "proof");
            if (!result.ok()) return std::nullopt;
            add_use(use, result.record, result.samples_per_second->dropped);
            return result.samples_per_second->per_second;
        };
        double end =
            request_.budget_seconds + std::max(kOverrun * request_.budget_seconds, kOverrunLeast);
        ProofSettings settings{.pairs_max = request_.proof_pairs_max};
        settings.is_time_up = [this] { return seconds() > 0.97 * request_.budget_seconds; };
        answer.proof = prove(
            settings, [&] { return measure({}, answer.before); },
            [&] { return measure(answer.search.best, answer.after); },
            [&] { return stopped() || seconds() > end; });
        if (answer.guard) answer.proof->loss_guard = answer.guard->text;
        if (is_simulated())
            answer.proof->loss_guard = "not compared: a simulated device learns nothing";
    }

    const TuneRequest& request_;
    const TuneWorld& world_;
    int shown_ = 0;  // lines of the search
    double step_seconds_ = 0, start_seconds_ = kStartSeconds;
};

}  // namespace

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
