// SPDX-License-Identifier: Apache-2.0
#include "process/fix_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "base/text.h"
#include "diagnosis/diagnosis.h"
#include "diagnosis/python_json.h"
#include "process/fix_batch.h"
#include "process/fix_measure.h"
#include "tuning/busy_machine.h"
#include "tuning/fix_order.h"
#include "tuning/watched_machine.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

// A trial of compile() and five runs of its proof compile for up to a minute each.
constexpr const char* kCompileBudget = "10m";

// True if the job made steps and then waited for something that did not come. A job that computes
// without making steps may be evaluating.
bool has_stopped_training(const TrialResult& run) {
    const std::vector<StepRecord>& steps = run.record.steps;
    return run.outcome == TrialOutcome::hang && !steps.empty() &&
           is_idle_from(steps.back().start_ns + steps.back().duration_ns, run.record.hosts);
}

class Trier {
  public:
    Trier(FixAnswer& answer, ProjectReader& reader, const FixQuestion& question,
          const FixTrialSettings& settings)
        : answer_(answer),
          reader_(reader),
          question_(question),
          settings_(settings),
          measure_(answer, reader, question, settings) {}

    FixTrials run() {
        if (!take_baseline()) return finish();
        const RunRecord& record = out_.baseline.record;
        out_.findings = diagnose_run(record, "").findings;
        for (Finding& finding : out_.findings)
            finding.where = place_in(question_.folder, finding.where);
        out_.is_on_gpu = is_on_gpu(record.python);
        plan_again();
        // The trials hold pointers to proposals, and one more may be added later.
        answer_.plan.proposals.reserve(answer_.plan.proposals.size() + 1);
        answer_.watched = watched_reads(record.python, question_.folder);
        measure_.choose_epochs(record, longest_interval());
        FixOrder order = order_trials(answer_.plan, watched());
        if (!order.trials.empty() || question_.level >= Level::training) {
            if (!repeat_baseline()) return finish();
            order = order_trials(answer_.plan, watched());
        }
        for (const auto& [id, why] : order.left_out) answer_.outcomes[id].note = why;
        for (const std::string& id : order.for_epochs) answer_.outcomes[id].lacks_time = true;
        if (order.epochs_wanted > 0) want_budget(measure_.longer_for(order.epochs_wanted));
        // Another batch size gains more than changes that relieve no cause seen, so it comes before
        // them.
        std::span<const FixChanges> trials = order.trials;
        for (const FixChanges& together : trials.first(order.by_cause)) try_group(together);
        if (question_.level >= Level::training) find_batch();
        for (const FixChanges& together : trials.subspan(order.by_cause)) try_group(together);
        for (const auto& [id, why] : missing_beside(answer_.plan, kept_, record))
            if (answer_.outcomes[id].result == FixResult::not_tried &&
                !answer_.outcomes[id].lacks_time)
                answer_.outcomes[id] = {.note = why};
        if (!kept_.empty() && !measure_.is_stopped()) prove_kept();
        return finish();
    }

  private:
    void say(const std::string& line) const { measure_.say(line); }

    bool take_baseline() {
        out_.baseline = measure_.first();
        out_.baseline_log = measure_.runner().log();
        out_.busy = busy_beside(out_.baseline.record.hosts);
        if (!out_.baseline.ok()) return false;
        out_.files_made = measure_.runner().files_made();
        double rate = out_.baseline.samples_per_second->per_second;
        best_ = {rate};
        say(fmt::format("unchanged: {:.1f} samples/s", rate));
        if (!out_.busy.empty()) say("note: " + out_.busy);
        return true;
    }

    // Returns false if the second run failed.
    bool repeat_baseline() {
        TrialResult again = measure_.again();
        if (!again.ok()) {
            // A job that asks for input, fails or stands still in its second minute cannot be
            // compared with anything. A job that was in the middle of a long evaluation can.
            bool had_time =
                (again.outcome != TrialOutcome::not_run &&
                 again.outcome != TrialOutcome::too_slow && again.outcome != TrialOutcome::hang) ||
                has_stopped_training(again);
            if (!had_time || measure_.is_stopped()) return true;
            out_.baseline = std::move(again);
            out_.baseline_log = measure_.runner().log();
            return false;
        }
        double rate = again.samples_per_second->per_second;
        if (measure_.epochs() > 0)
            best_ = {measure_.epoch_rate(out_.baseline.record).value_or(rate)};
        best_.push_back(rate);
        say(fmt::format("unchanged, measured again: {:.1f} {}", rate, measure_.unit()));
        return true;
    }

    void plan_again() {
        FixMachine& machine = machine_ =
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
                .epoch = measure_.epoch(),
                .epochs = measure_.epochs(),
                .unseen_calls = unseen_calls_,
                .unseen_loops = unseen_loops_};
    }

    [[nodiscard]] int longest_interval() const {
        int out = 1;
        for (const FixProposal& one : answer_.plan.proposals) out = std::max(out, interval_of(one));
        return out;
    }

    static std::string name_of(const FixChanges& changes) {
        std::vector<std::string> ids;
        for (const FixProposal* change : changes) ids.push_back(change->id);
        return join(ids, " + ");
    }

    void note_all(const FixChanges& changes, const FixOutcome& outcome) {
        for (const FixProposal* change : changes) answer_.outcomes[change->id] = outcome;
    }

    // The most promising change is always tried, and others as long as there is nothing to prove: the
    // proof may then end late.
    [[nodiscard]] bool may_be_late() const {
        if (measure_.is_stopped() || measure_.runs_left() <= 0) return false;
        if (!has_tried_) return measure_.budget().has_time_for_proof_run(measure_.seconds());
        return kept_.empty() && measure_.budget().has_time_for_late_proof(measure_.seconds());
    }

    // Says why there was no trial of these changes, and which budget would have one.
    void note_untried(FixChanges together) {
        bool has_runs = measure_.runs_left() > 0;
        std::erase_if(together, [&](const FixProposal* one) {
            return answer_.outcomes[one->id].ratio.has_value();
        });
        FixOutcome outcome{.note = measure_.is_stopped() ? "you interrupted the search"
                                   : has_runs            ? "there was no time left for it"
                                                         : "enough was tried already",
                           .lacks_time = !measure_.is_stopped() && has_runs};
        note_all(together, outcome);
        if (!outcome.lacks_time) return;
        want_budget(measure_.budget().longer());
        if (has_compile(together)) want_budget(kCompileBudget);
    }

    // The gain of changes that were measured together is not the gain of each.
    void note_company(const FixChanges& together) {
        for (const FixProposal* change : together) {
            std::vector<std::string> others;
            for (const FixProposal* one : together)
                if (one != change) others.push_back(one->id);
            std::string& note = answer_.outcomes[change->id].note;
            note = note.empty() ? fmt::format("together with {}", join(others, ", "))
                                : fmt::format("together with {}; {}", join(others, ", "), note);
        }
    }

    // Measures the changes together with those kept so far. If the group gains nothing, tries them
    // one by one.
    void try_group(FixChanges together) {
        if (!take_what_it_makes_room_for(together)) return;
        FixChanges all = kept_;
        all.insert(all.end(), together.begin(), together.end());
        std::erase_if(together, [&](const FixProposal* one) {
            std::string why = moot(*one, kept_);
            if (why.empty()) why = missing_for(*one, all, out_.baseline.record);
            if (!why.empty()) note_all({one}, {FixResult::not_tried, std::nullopt, why});
            return !why.empty();
        });
        if (together.empty()) return;
        if (!measure_.has_time() && !may_be_late()) return note_untried(std::move(together));
        FixOutcome outcome = measure(together);
        if (together.size() > 1 && outcome.result != FixResult::kept) {
            // A pair that makes room: one was tried alone before, the other is useless alone.
            if (!together.back()->room_for.empty())
                note_all({together.back()}, outcome);
            else
                for (const FixProposal* one : together) try_group({one});
            return;
        }
        note_all(together, outcome);
        if (outcome.result != FixResult::kept) return;
        if (together.size() > 1) note_company(together);
        for (const FixProposal* one : kept_)
            if (std::string why = moot(*one, together); !why.empty())
                note_all({one}, {FixResult::not_needed, answer_.outcomes[one->id].ratio, why});
        kept_ = beside(together);
        kept_.insert(kept_.end(), together.begin(), together.end());
        while (take_more_workers()) {
        }
    }

    // The time of a batch and of a step were not known well in the first run, of a loader without
    // workers least of all. Asks the run with the kept workers whether they are enough, and if not,
    // measures what it asks for. Returns true if that was kept.
    bool take_more_workers() {
        auto kept = std::ranges::find(kept_, "num_workers", &FixProposal::setting);
        if (kept == kept_.end() || !kept_run_ || !measure_.has_time()) return false;
        TrialResult run = *std::exchange(kept_run_, std::nullopt);
        FixMachine seen = watched_machine(settings_.machine, answer_.facts, run,
                                          diagnose_run(run.record, "").findings);
        auto now = parse_integer((*kept)->after);
        if (!now || !seen.is_watched || seen.workers <= *now) return false;
        FixMachine machine = machine_;
        machine.workers = seen.workers;
        machine.is_watched = true;
        FixPlan plan = plan_fixes(answer_.facts, machine, question_);
        keep_exact(reader_, answer_.facts, question_, plan);
        std::string id = (*kept)->id;
        auto more = std::ranges::find(plan.proposals, id, &FixProposal::id);
        if (more == plan.proposals.end()) return false;
        say(fmt::format("the steps still wait for data: trying {} workers", more->after));
        FixOutcome outcome = measure({&*more});
        if (outcome.result != FixResult::kept) return false;
        *answer_.outcomes[id].ratio *= outcome.ratio.value_or(1);
        // What was not tried yet may hold the same edit.
        for (FixProposal& one : answer_.plan.proposals) {
            auto same = std::ranges::find(plan.proposals, one.id, &FixProposal::id);
            bool is_open = answer_.outcomes[one.id].result == FixResult::not_tried || one.id == id;
            if (!is_open || same == plan.proposals.end() || same->setting != one.setting) continue;
            same->level = std::max(same->level, one.level);
            one = *same;
        }
        return true;
    }

    // Returns false if the change makes room for something that is not available.
    bool take_what_it_makes_room_for(FixChanges& together) {
        const FixProposal* room = together.front();
        if (room->room_for.empty()) return true;
        std::set<std::string> measured;
        for (const auto& [id, outcome] : answer_.outcomes)
            if (outcome.ratio) measured.insert(id);
        together = with_what_needs_it(*room, answer_.plan, kept_, measured);
        if (together.empty())
            note_all({room}, {FixResult::not_tried, std::nullopt,
                              fmt::format("it only makes room for {}", room->room_for)});
        return !together.empty();
    }

    // The kept changes, without those that do nothing once `added` is there, or that it replaces.
    [[nodiscard]] FixChanges beside(const FixChanges& added) const {
        FixChanges out = kept_;
        std::erase_if(out, [&](const FixProposal* one) {
            return !moot(*one, added).empty() ||
                   std::ranges::find(added, one->id, &FixProposal::id) != added.end();
        });
        return out;
    }

    FixOutcome measure(const FixChanges& added) {
        has_tried_ = true;
        FixChanges changes = beside(added);
        changes.insert(changes.end(), added.begin(), added.end());
        TrialResult result = measure_.trial(changes);
        if (!result.ok()) {
            FixOutcome out{result_of(result.outcome), std::nullopt, result.message};
            bool made_no_step = result.outcome == TrialOutcome::hang && result.record.steps.empty();
            if ((result.outcome == TrialOutcome::too_slow || made_no_step) && has_compile(added)) {
                out = {FixResult::not_tried, std::nullopt,
                       "compiling took all the time that it had"};
                out.lacks_time = true;
                want_budget(kCompileBudget);
            }
            say(fmt::format("{}: {} ({})", name_of(added), result_name(out.result), out.note));
            return out;
        }
        GuardAnswer guard = measure_.guard_answer();
        FixRates rates{best_, {result.samples_per_second->per_second}};
        while (rates.is_open() && measure_.has_time()) {
            // The machine may have become faster or slower since `before` was measured.
            if (!add_run(kept_, rates.before) || !rates.is_uneven() || !rates.is_open()) break;
            if (!measure_.has_time() || !add_run(changes, rates.after)) break;
        }
        FixOutcome out;
        out.ratio = rates.ratio();
        out.result = rates.result();
        best_ = out.result == FixResult::kept ? rates.after : rates.before;
        if (out.result == FixResult::kept) kept_run_ = std::move(result);
        if (guard.other_draws && !has_other_draws_ && out.result == FixResult::kept) {
            out.note = guard.text;
            raise_level(added);
        }
        say(fmt::format("{}: {:.1f} samples/s, {:+.0f} %: {}", name_of(added), rates.after.back(),
                        100 * (*out.ratio - 1), result_name(out.result)));
        return out;
    }

    // Runs the job with these changes and adds its rate. Returns false if the run failed.
    bool add_run(const FixChanges& changes, std::vector<double>& rates) {
        TrialResult result = measure_.trial(changes);
        if (!result.ok()) return false;
        rates.push_back(result.samples_per_second->per_second);
        say(fmt::format("  {}, measured again: {:.1f} samples/s",
                        changes.empty() ? "unchanged" : name_of(changes), rates.back()));
        return true;
    }

    // A change of level safe that reorders random numbers is raised to level numerics.
    void raise_level(const FixChanges& changes) {
        has_other_draws_ = true;
        for (FixProposal& proposal : answer_.plan.proposals) {
            bool is_one = std::ranges::any_of(
                changes, [&](const FixProposal* change) { return change->id == proposal.id; });
            if (is_one) proposal.level = std::max(proposal.level, Level::numerics);
        }
    }

    // Notes a budget in minutes ("20m") that what is left needs. The longest one counts.
    void want_budget(const std::string& budget) {
        auto minutes = [](const std::string& text) {
            return parse_number(text.substr(0, text.find('m'))).value_or(0);
        };
        if (minutes(budget) > minutes(answer_.longer)) answer_.longer = budget;
    }

    // Searches for the batch size with the kept changes in force.
    void find_batch() {
        FixBatch found =
            find_fix_batch(measure_, answer_, question_, settings_, kept_, std::ranges::max(best_));
        if (!found.refused.empty())
            answer_.plan.refused.push_back(
                {{.file = answer_.facts.script}, "batch_size", found.refused});
        if (found.has_no_time && !measure_.is_stopped() && measure_.runs_left() > 0) {
            answer_.batch_lacks_time = true;
            want_budget(measure_.budget().longer());
        }
        if (!found.proposal) return;
        answer_.outcomes[found.proposal->id] = found.outcome;
        answer_.plan.proposals.push_back(std::move(*found.proposal));
        if (found.outcome.result != FixResult::kept) return;
        best_ = {found.rate};
        kept_.push_back(&answer_.plan.proposals.back());
        // Later changes are measured over epochs, but the batch search was not.
        std::vector<double> over_epochs;
        if (measure_.epochs() > 0 && measure_.has_time() && add_run(kept_, over_epochs))
            best_ = over_epochs;
    }

    [[nodiscard]] FixResult result_of(TrialOutcome outcome) const {
        if (outcome == TrialOutcome::not_run || measure_.is_stopped()) return FixResult::not_tried;
        if (measure_.has_changed_training()) return FixResult::changed_training;
        return outcome == TrialOutcome::not_in_force ? FixResult::not_in_force : FixResult::failed;
    }

    void prove_kept() {
        say("proving it: before and after take turns, at least five pairs");
        const TuneBudget& budget = measure_.budget();
        std::string broken, unrepeated, compared;
        auto rate_of = [&](const FixChanges& changes) {
            return [&, changes]() -> std::optional<double> {
                TrialResult result = measure_.for_proof(changes);
                if (!result.ok()) {
                    if (measure_.is_stopped()) return std::nullopt;
                    if (!changes.empty())
                        broken = result.message;
                    else if (result.outcome != TrialOutcome::too_slow)
                        unrepeated = result.message;
                    say(fmt::format("  {}: {}", changes.empty() ? "before" : "after",
                                    result.message));
                    return std::nullopt;
                }
                if (!changes.empty()) compared = measure_.guard_answer().text;
                say(fmt::format("  {}: {:.1f} samples/s", changes.empty() ? "before" : "after",
                                result.samples_per_second->per_second));
                return result.samples_per_second->per_second;
            };
        };
        ProofSettings proof{.unit = measure_.unit()};
        // After five pairs, a pair begins only if there is time for both of its runs.
        proof.is_time_up = [&] { return !budget.has_time_for_more(measure_.seconds()); };
        out_.proof = prove(proof, rate_of({}), rate_of(kept_), [&] {
            return measure_.is_stopped() || !budget.has_time_for_proof_run(measure_.seconds());
        });
        out_.losses_after = measure_.losses_after();
        if (broken.empty()) broken = measure_.otherwise();
        out_.proof->loss_guard = broken.empty() ? compared : broken;
        if (!out_.proof->has_interval() && !measure_.is_stopped() && broken.empty() &&
            unrepeated.empty()) {
            want_budget(budget.longer());
            out_.proof->longer = answer_.longer;
        }
        if (!broken.empty()) out_.proof->verdict = Verdict::not_proven;
        if (out_.proof->verdict == Verdict::faster) return;
        for (const FixProposal* proposal : kept_) {
            FixOutcome& outcome = answer_.outcomes[proposal->id];
            outcome.result = out_.proof->verdict == Verdict::not_proven ? FixResult::not_proven
                                                                        : FixResult::no_gain;
            outcome.note =
                !broken.empty()       ? broken
                : !unrepeated.empty() ? "a run without the change failed: " + unrepeated
                : measure_.is_stopped() && !out_.proof->has_interval() ? "you interrupted the proof"
                : out_.proof->longer.empty()
                    ? "the proof does not confirm the trial"
                    : fmt::format("not enough time for the proof: --budget {}", out_.proof->longer);
        }
        kept_.clear();
    }

    FixTrials finish() {
        answer_.patch = make_patch(reader_, answer_.facts, question_, kept_);
        out_.losses_before = measure_.losses_before();
        out_.trials = measure_.runner().runs();
        out_.outside.assign(measure_.runner().outside().begin(), measure_.runner().outside().end());
        out_.unguarded = measure_.runner().unguarded();
        out_.seconds = measure_.seconds();
        out_.is_stopped = answer_.is_interrupted = measure_.is_stopped();
        return std::move(out_);
    }

    FixAnswer& answer_;
    ProjectReader& reader_;
    const FixQuestion& question_;
    const FixTrialSettings& settings_;
    FixMeasure measure_;
    FixTrials out_;
    FixChanges kept_;
    FixMachine machine_;                   // as the job as it is showed it
    std::optional<TrialResult> kept_run_;  // of what was kept last
    std::vector<double> best_;             // samples/s with the kept changes, one per run
    bool has_tried_ = false;               // at least one change
    bool has_other_draws_ = false;         // a kept change reorders random numbers
    std::set<int> unseen_calls_, unseen_loops_;
};

}  // namespace

FixTrials try_fixes(FixAnswer& answer, ProjectReader& reader, const FixQuestion& question,
                    const FixTrialSettings& settings) {
    return Trier(answer, reader, question, settings).run();
}

}  // namespace saturate
