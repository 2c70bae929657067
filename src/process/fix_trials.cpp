// SPDX-License-Identifier: Apache-2.0
#include "process/fix_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "diagnosis/diagnosis.h"
#include "diagnosis/python_job.h"
#include "probe/machine.h"
#include "process/fix_runner.h"
#include "process/signals.h"
#include "project/propose_batch.h"
#include "tuning/batch_size.h"
#include "tuning/budget.h"
#include "tuning/epochs.h"
#include "tuning/fix_order.h"
#include "tuning/training_guard.h"
#include "tuning/watched_machine.h"

namespace saturate {

namespace {

constexpr int kMostTrials = 12;
constexpr double kClose = 1.15;         // a gain below this is measured again beside the best
constexpr double kBaselineShare = 0.5;  // of the budget, for the job as it is
constexpr double kBriefSeconds = 0.4;   // of steps: what is measured is the epochs

Level level_of(const std::vector<const FixProposal*>& changes) {
    Level out = Level::safe;
    for (const FixProposal* change : changes) out = std::max(out, change->level);
    return out;
}

class Trier {
  public:
    Trier(FixAnswer& answer, ProjectReader& reader, const FixQuestion& question,
          const FixTrialSettings& settings)
        : answer_(answer),
          reader_(reader),
          question_(question),
          settings_(settings),
          runner_({.job = settings.job,
                   .output = settings.output,
                   .with_losses = settings.has_gpu,
                   .is_stopped = [this] { return stopped(); }},
                  answer.facts, reader, question),
          budget_(settings.budget_seconds, false) {}

    FixTrials run() {
        if (!take_baseline()) return finish();
        const RunRecord& record = out_.baseline.record;
        out_.findings = diagnose_run(record, "").findings;
        out_.is_on_gpu = is_on_gpu(record.python);
        plan_again();
        // Proposals are pointed to, and one may join them.
        answer_.plan.proposals.reserve(answer_.plan.proposals.size() + 1);
        answer_.watched = watched_reads(record.python, question_.folder);
        choose_epochs();
        FixOrder order = order_trials(answer_.plan, watched());
        if (!order.trials.empty() || question_.level >= Level::training) {
            repeat_baseline();
            order = order_trials(answer_.plan, watched());
        }
        for (const auto& [id, why] : order.left_out) answer_.outcomes[id].note = why;
        for (const std::vector<const FixProposal*>& together : order.trials) try_group(together);
        if (question_.level >= Level::training) find_batch();
        if (!kept_.empty() && !stopped()) prove_kept();
        return finish();
    }

  private:
    [[nodiscard]] bool stopped() const { return interrupts_.stop_signal() != 0; }
    [[nodiscard]] double seconds() const { return static_cast<double>(now_ns() - start_ns_) / 1e9; }
    void say(const std::string& line) const {
        if (settings_.on_line) settings_.on_line(line);
    }

    TrialResult trial(const FixChanges& changes, const FixRunLimits& limits) {
        TrialResult result = runner_.run(changes, limits);
        budget_.see(result);
        if (epochs_.count == 0 || !result.ok()) return result;
        if (auto rate = rate_over_epochs(result.record, epochs_.count)) {
            result.samples_per_second->per_second = *rate;
        } else {
            result.outcome = TrialOutcome::failed;
            result.message =
                fmt::format("it came through fewer than {} epochs in its time", 1 + epochs_.count);
        }
        return result;
    }

    // What was asked for and is not in force, and what trains otherwise than before, is no pass.
    // `changed_` says of the last one which of the two it was.
    TrialResult guarded_trial(const FixChanges& changes, const FixRunLimits& limits) {
        TrialResult result = trial(changes, limits);
        changed_ = result.outcome == TrialOutcome::nonfinite;
        last_guard_ = {};
        if (!result.ok()) return result;
        for (const FixProposal* change : changes) {
            if (auto why = not_in_force(*change, result.record)) {
                result.outcome = TrialOutcome::not_in_force;
                result.message = *why;
                return result;
            }
        }
        // Of a script that goes on after any error, other losses may be lost batches.
        bool swallows = std::ranges::any_of(
            answer_.facts.loops, [](const FactLoop& loop) { return loop.swallows.has_value(); });
        last_guard_ = guard_.judge(
            result.record,
            {.of_change = level_of(changes), .allowed = swallows ? Level::safe : question_.level});
        if (!last_guard_.holds) {
            changed_ = true;
            result.outcome = TrialOutcome::failed;
            result.message = last_guard_.text;
        }
        return result;
    }

    [[nodiscard]] FixRunLimits limits(double measured, double most) const {
        bool by_epochs = epochs_.count > 0;
        return {.measured = by_epochs ? kBriefSeconds : measured,
                .most = std::min(most, budget_.most_for_run(seconds())),
                .least_steps = by_epochs ? epochs_.least_steps : 0};
    }
    [[nodiscard]] FixRunLimits of_search() const {
        // One that takes far longer than the job as it is would eat the time of the proof.
        return limits(budget_.trial_seconds(),
                      std::max({20.0, 3 * out_.baseline.seconds, 3 * budget_.proof_run_seconds()}));
    }
    [[nodiscard]] bool has_time() const {
        return !stopped() && runner_.runs() < kMostTrials && budget_.left_for_search(seconds()) > 0;
    }

    bool take_baseline() {
        double most = kBaselineShare * settings_.budget_seconds;
        out_.baseline = trial({}, {.measured = budget_.trial_seconds(), .most = most});
        out_.baseline_log = runner_.log();
        if (!out_.baseline.ok()) return false;
        guard_.add_before(out_.baseline.record);
        out_.losses_before = losses_of(out_.baseline.record);
        out_.files_made = runner_.files_made();
        best_ = out_.baseline.samples_per_second->per_second;
        say(fmt::format("as it is: {:.1f} samples/s", best_));
        return true;
    }

    void plan_again() {
        FixMachine machine =
            watched_machine(settings_.machine, answer_.facts, out_.baseline, out_.findings);
        for (const FactLoop& loop : answer_.facts.loops)
            if (machine.watched.is_unseen(loop)) unseen_loops_.insert(loop.id);
        unseen_calls_ = machine.watched.unseen;
        answer_.plan = plan_fixes(answer_.facts, machine, question_);
        keep_exact(reader_, answer_.facts, question_, answer_.plan);
    }

    [[nodiscard]] WatchedRun watched() const {
        const RunRecord& record = out_.baseline.record;
        return {.record = record,
                .rate = *out_.baseline.samples_per_second,
                .findings = out_.findings,
                .has_gpu = settings_.has_gpu && is_on_gpu(record.python),
                .epoch = epoch_,
                .epochs = epochs_.count,
                .unseen_calls = unseen_calls_,
                .unseen_loops = unseen_loops_};
    }

    void choose_epochs() {
        epoch_ = epoch_times(out_.baseline.record);
        bool has_interval = std::ranges::any_of(answer_.plan.proposals, [](const auto& one) {
            return one.setting == "eval_interval" || one.setting == "checkpoint_interval";
        });
        epochs_ = plan_epochs(epoch_, has_interval, budget_, seconds());
        if (epochs_.count > 0) budget_.measure_at_least((1 + epochs_.count) * epoch_.seconds);
    }

    // A longer run knows better how long an epoch is, and how many of them the script has.
    void choose_epochs_again(const EpochTimes& seen) {
        if (epochs_.count == 0) return;
        budget_.measure_at_least(0);
        EpochPlan now = plan_epochs(seen, epochs_.unit > 1, budget_, seconds());
        if (now.count < epochs_.count) epochs_ = now;
        epochs_.shorten(seen.seen);
        if (seen.evaluation) epoch_ = seen;
        budget_.measure_at_least(epochs_.count > 0 ? (1 + epochs_.count) * epoch_.seconds : 0);
    }

    // Its own noise, and whether its losses repeat: nothing is compared without.
    void repeat_baseline() {
        TrialResult again;
        again.outcome = TrialOutcome::not_run;
        if (has_time()) again = runner_.run({}, of_search());
        budget_.see(again);
        choose_epochs_again(again.ok() ? epoch_times(again.record) : EpochTimes{});
        if (!again.ok()) return;
        guard_.add_before(again.record);
        double rate = again.samples_per_second->per_second;
        if (epochs_.count > 0) {
            rate = *rate_over_epochs(again.record, epochs_.count);
            best_ = rate_over_epochs(out_.baseline.record, epochs_.count).value_or(rate);
        }
        say(fmt::format("as it is, measured again: {:.1f} {}", rate, unit()));
        // The faster of two: a gain is over the best that the job does by itself.
        best_ = std::max(best_, rate);
    }
    [[nodiscard]] std::string unit() const {
        return epochs_.count == 0
                   ? "samples/s"
                   : fmt::format("samples/s over {} epochs, pauses included", epochs_.count);
    }

    static std::string name_of(const FixChanges& changes) {
        std::vector<std::string> ids;
        for (const FixProposal* change : changes) ids.push_back(change->id);
        return join(ids, " + ");
    }

    void note_all(const FixChanges& changes, const FixOutcome& outcome) {
        for (const FixProposal* change : changes) answer_.outcomes[change->id] = outcome;
    }

    // What they are worth beside those that were kept before; apart where they do not gain
    // together.
    void try_group(const FixChanges& together) {
        // The most promising one is tried in any case: what the proof lacks then, it takes late.
        bool is_first = !has_tried_ && !stopped() && budget_.has_time_for_proof_run(seconds());
        if (!has_time() && !is_first) {
            note_all(together, {"not tried", std::nullopt,
                                runner_.runs() < kMostTrials ? "no time was left for it"
                                                             : "enough was tried before it"});
            if (!stopped() && runner_.runs() < kMostTrials) answer_.longer = budget_.longer();
            return;
        }
        FixOutcome outcome = measure(together);
        if (together.size() > 1 && outcome.word != "kept") {
            for (const FixProposal* one : together) try_group({one});
            return;
        }
        note_all(together, outcome);
        if (outcome.word == "kept") kept_.insert(kept_.end(), together.begin(), together.end());
    }

    FixOutcome measure(const FixChanges& added) {
        has_tried_ = true;
        FixChanges changes = kept_;
        changes.insert(changes.end(), added.begin(), added.end());
        TrialResult result = guarded_trial(changes, of_search());
        if (!result.ok()) {
            FixOutcome out{word_of(result.outcome), std::nullopt, result.message};
            say(fmt::format("{}: {} ({})", name_of(added), out.word, result.message));
            return out;
        }
        double rate = result.samples_per_second->per_second;
        bool has_other_draws = last_guard_.other_draws && !has_other_draws_;
        std::string again, draws = last_guard_.text;
        if (rate >= kFixGain * best_ && rate < kClose * best_ && has_time()) {
            // Close: the machine may have become faster meanwhile.
            TrialResult before = trial(kept_, of_search());
            if (before.ok()) best_ = std::max(best_, before.samples_per_second->per_second);
            again = ", the best until now measured again";
        }
        FixOutcome out;
        out.ratio = rate / best_;
        out.word = rate >= kFixGain * best_   ? "kept"
                   : rate <= best_ / kFixGain ? "slower"
                                              : "no gain";
        if (out.word == "kept") best_ = rate;
        if (has_other_draws && out.word == "kept") {
            out.note = draws;
            raise_level(added);
        }
        say(fmt::format("{}: {:.1f} samples/s, {:+.0f} %{}: {}", name_of(added), rate,
                        100 * (*out.ratio - 1), again, out.word));
        return out;
    }

    // What was to change the time alone and brings other random numbers is not of level safe here.
    void raise_level(const FixChanges& changes) {
        has_other_draws_ = true;
        for (FixProposal& proposal : answer_.plan.proposals) {
            bool is_one = std::ranges::any_of(
                changes, [&](const FixProposal* change) { return change->id == proposal.id; });
            if (is_one) proposal.level = std::max(proposal.level, Level::numerics);
        }
    }

    // The batch size as `tune` finds it, beside what was kept. Epochs of other sizes do not compare:
    // by the rate of the steps.
    void find_batch() {
        BatchPlace place = batch_place(answer_.facts, question_);
        if (place.size <= 0) {
            answer_.plan.refused.push_back(
                {{.file = answer_.facts.script}, "batch_size", place.why});
            return;
        }
        if (!has_time()) return;
        EpochPlan epochs = std::exchange(epochs_, {});
        budget_.measure_at_least(0);
        search_batch(place);
        epochs_ = epochs;
        if (epochs_.count > 0) budget_.measure_at_least((1 + epochs_.count) * epoch_.seconds);
    }

    void search_batch(const BatchPlace& place) {
        BatchLimits limits{.min = std::min<std::int64_t>(place.size, settings_.batch.min),
                           .max = std::max(place.size, settings_.batch.max),
                           .step = settings_.batch.step,
                           .probes_max = std::min(6, kMostTrials - runner_.runs()),
                           .climb_only = true};
        std::map<std::int64_t, double> rates;
        BatchAnswer found =
            find_batch_size(place.size, limits, {}, [&](const TrialRequest& wanted) -> TrialResult {
                auto size = parse_integer(value_of(wanted.settings, "batch_size"));
                if (!size || !has_time()) return {.outcome = TrialOutcome::not_run};
                auto proposal = batch_proposal(answer_.facts, question_, *size);
                if (!proposal) return {.outcome = TrialOutcome::not_run};
                FixChanges changes = kept_;
                if (*size != place.size) changes.push_back(&*proposal);
                TrialResult result = guarded_trial(changes, of_search());
                result.memory_limit_bytes = probe_memory().usable_bytes();
                if (settings_.device_memory_bytes > 0)
                    result.memory_limit_bytes = settings_.device_memory_bytes;
                if (result.ok()) rates[*size] = result.samples_per_second->per_second;
                say(fmt::format(
                    "batch_size {}: {}", *size,
                    result.ok() ? fmt::format("{:.1f} samples/s", rates[*size]) : result.message));
                return result;
            });
        if (found.size <= 0 || found.size == place.size || !rates.contains(found.size)) return;
        auto proposal = batch_proposal(answer_.facts, question_, found.size);
        if (!proposal) return;
        double before = rates.contains(place.size) ? rates[place.size] : best_;
        FixOutcome outcome;
        outcome.ratio = rates[found.size] / before;
        outcome.word = *outcome.ratio >= kFixGain ? "kept" : "no gain";
        outcome.note = found.why;
        answer_.outcomes[proposal->id] = outcome;
        answer_.plan.proposals.push_back(std::move(*proposal));
        if (outcome.word != "kept") return;
        best_ = rates[found.size];
        kept_.push_back(&answer_.plan.proposals.back());
    }

    [[nodiscard]] std::string word_of(TrialOutcome outcome) const {
        if (outcome == TrialOutcome::not_run || stopped()) return "not tried";
        if (changed_) return "changed training";
        return outcome == TrialOutcome::not_in_force ? "not in force" : "failed";
    }

    void prove_kept() {
        say("proof: before and after in turns, five pairs at least");
        std::string broken, compared;
        auto rate_of = [&](const FixChanges& changes) {
            return [&, changes]() -> std::optional<double> {
                FixRunLimits most = limits(budget_.proof_seconds(), settings_.budget_seconds);
                TrialResult result =
                    changes.empty() ? trial({}, most) : guarded_trial(changes, most);
                if (!result.ok()) {
                    if (!changes.empty() && !stopped()) broken = result.message;
                    return std::nullopt;
                }
                if (changes.empty()) {
                    guard_.add_before(result.record);
                } else {
                    compared = last_guard_.text;
                    out_.losses_after = losses_of(result.record);
                }
                say(fmt::format("  {}: {:.1f} samples/s", changes.empty() ? "before" : "after",
                                result.samples_per_second->per_second));
                return result.samples_per_second->per_second;
            };
        };
        ProofSettings proof{.unit = unit()};
        auto is_time_up = [this] { return !budget_.has_time_for_proof_run(seconds()); };
        // Beyond five pairs there is time for both runs of one, or for none.
        proof.is_time_up = [this] { return !budget_.has_time_for_more(seconds()); };
        out_.proof =
            prove(proof, rate_of({}), rate_of(kept_), [&] { return stopped() || is_time_up(); });
        out_.proof->loss_guard = broken.empty() ? compared : broken;
        if (!out_.proof->has_interval() && !stopped() && broken.empty())
            out_.proof->longer = budget_.longer();
        if (!broken.empty()) out_.proof->verdict = Verdict::not_proven;
        if (out_.proof->verdict == Verdict::faster) return;
        for (const FixProposal* proposal : kept_) {
            FixOutcome& outcome = answer_.outcomes[proposal->id];
            outcome.word = out_.proof->verdict == Verdict::not_proven ? "not proven" : "no gain";
            outcome.note =
                !broken.empty() ? broken
                : out_.proof->longer.empty()
                    ? "the proof does not confirm the trial"
                    : fmt::format("not enough time for the proof: --budget {}", out_.proof->longer);
        }
        kept_.clear();
    }

    FixTrials finish() {
        answer_.patch = make_patch(reader_, answer_.facts, question_, kept_);
        out_.trials = runner_.runs();
        out_.unguarded = runner_.unguarded();
        out_.seconds = seconds();
        out_.is_stopped = stopped();
        return std::move(out_);
    }

    FixAnswer& answer_;
    ProjectReader& reader_;
    const FixQuestion& question_;
    const FixTrialSettings& settings_;
    Signals interrupts_{Signals::Role::stop};
    FixRunner runner_;
    TuneBudget budget_;
    TrainingGuard guard_;
    FixTrials out_;
    FixChanges kept_;
    double best_ = 0;  // samples/s
    GuardAnswer last_guard_;
    bool changed_ = false;          // the last trial trained otherwise than before
    bool has_tried_ = false;        // a change
    bool has_other_draws_ = false;  // what was kept brings other random numbers
    EpochTimes epoch_;
    EpochPlan epochs_;  // that are measured; none: the steps alone
    std::set<int> unseen_calls_, unseen_loops_;
    std::int64_t start_ns_ = now_ns();
};

}  // namespace

FixTrials try_fixes(FixAnswer& answer, ProjectReader& reader, const FixQuestion& question,
                    const FixTrialSettings& settings) {
    return Trier(answer, reader, question, settings).run();
}

}  // namespace saturate
