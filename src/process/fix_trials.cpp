// SPDX-License-Identifier: Apache-2.0
#include "process/fix_trials.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "diagnosis/diagnosis.h"
#include "diagnosis/python_job.h"
#include "probe/machine.h"
#include "process/scratch_tree.h"
#include "process/signals.h"
#include "process/trial_process.h"
#include "project/propose_batch.h"
#include "tuning/batch_size.h"
#include "tuning/budget.h"
#include "tuning/fix_order.h"
#include "tuning/training_guard.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr int kMostTrials = 12;
constexpr double kClose = 1.15;         // a gain below this is measured again beside the best
constexpr double kBaselineShare = 0.5;  // of the budget, for the job as it is

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
          guarded_(guarded_around(question.folder)),
          inside_(fs::canonical(question.folder).lexically_relative(guarded_)),
          budget_(settings.budget_seconds, false) {}

    FixTrials run() {
        if (!take_baseline()) return finish();
        const RunRecord& record = out_.baseline.record;
        out_.findings = diagnose_run(record, "").findings;
        plan_again();
        // Proposals are pointed to, and one may join them.
        answer_.plan.proposals.reserve(answer_.plan.proposals.size() + 1);
        answer_.watched = watched_reads(record.python, question_.folder);
        bool has_gpu = settings_.has_gpu && is_on_gpu(record.python);
        FixOrder order = order_trials(
            answer_.plan, {record, *out_.baseline.samples_per_second, out_.findings, has_gpu});
        for (const auto& [id, why] : order.left_out) answer_.outcomes[id].note = why;
        // Its own noise, and whether its losses repeat: nothing is compared without.
        if (!order.trials.empty()) repeat_baseline();
        for (const std::vector<const FixProposal*>& together : order.trials) try_group(together);
        if (question_.level >= Level::training) find_batch();
        if (!kept_.empty() && !stopped()) prove_kept();
        return finish();
    }

  private:
    using Changes = std::vector<const FixProposal*>;

    [[nodiscard]] bool stopped() const { return interrupts_.stop_signal() != 0; }
    [[nodiscard]] double seconds() const { return static_cast<double>(now_ns() - start_ns_) / 1e9; }
    void say(const std::string& line) const {
        if (settings_.on_line) settings_.on_line(line);
    }

    struct Limits {
        double measured = 0;  // seconds of steady steps
        double most = 0;      // from start to end
    };

    TrialResult trial(const Changes& changes, const Limits& limits) {
        std::vector<ScratchFile> edited;
        if (!changes.empty()) {
            FixPatch patch = make_patch(reader_, answer_.facts, question_, changes);
            if (!patch.problem.empty())
                return {.outcome = TrialOutcome::failed, .message = patch.problem};
            for (const EditedFile& file : patch.files) edited.push_back({file.file, file.after});
        }
        ScratchTree tree({.folder = guarded_, .inside = inside_, .parent = {}, .edited = edited});
        out_.unguarded = tree.unguarded();
        fs::path folder = fs::absolute(settings_.output) / fmt::format("trial-{}", ++out_.trials);
        log_ = folder.string() + ".log";
        std::vector<std::string> command = {
            fs::read_symlink("/proc/self/exe").string(), "run", "--profile", "off", "-o",
            folder.string(), "--", "env",
            // Trackers of experiments get no runs from trials.
            "WANDB_MODE=disabled", "COMET_MODE=disabled",
            fmt::format("MLFLOW_TRACKING_URI=file://{}/mlruns", tree.root().string())};
        for (const std::string& word : tree.command(settings_.command)) command.push_back(word);
        TrialResult result = run_trial_process({.command = command,
                                                .run_folder = folder,
                                                .log = log_,
                                                .seconds = limits.measured,
                                                .seconds_max = limits.most,
                                                .start_seconds_max = limits.most,
                                                .is_stopped = [this] { return stopped(); }});
        budget_.see(result);
        return result;
    }

    // What was asked for and is not in force, and what trains otherwise than before, is no pass.
    // `changed_` says of the last one which of the two it was.
    TrialResult guarded_trial(const Changes& changes, const Limits& limits) {
        changed_ = false;
        TrialResult result = trial(changes, limits);
        changed_ = result.outcome == TrialOutcome::nonfinite;
        if (!result.ok()) return result;
        for (const FixProposal* change : changes) {
            if (auto why = not_in_force(*change, result.record)) {
                result.outcome = TrialOutcome::not_in_force;
                result.message = *why;
                return result;
            }
        }
        GuardAnswer guard = guard_.judge(result.record, level_of(changes));
        last_guard_ = guard.text;
        if (!guard.holds) {
            changed_ = true;
            result.outcome = TrialOutcome::failed;
            result.message = guard.text;
        }
        return result;
    }

    [[nodiscard]] Limits of_search() const {
        // One that takes far longer than the job as it is would eat the time of the proof.
        double most = std::max(20.0, 3 * out_.baseline.seconds);
        return {budget_.trial_seconds(), std::min(most, budget_.most_for_run(seconds()))};
    }
    [[nodiscard]] bool has_time() const {
        return !stopped() && out_.trials < kMostTrials && budget_.left_for_search(seconds()) > 0;
    }

    bool take_baseline() {
        double most = kBaselineShare * settings_.budget_seconds;
        out_.baseline = trial({}, {budget_.trial_seconds(), most});
        out_.baseline_log = log_;
        if (!out_.baseline.ok()) return false;
        guard_.add_before(out_.baseline.record);
        out_.losses_before = loss_curve(out_.baseline.record.steps);
        best_ = out_.baseline.samples_per_second->per_second;
        say(fmt::format("as it is: {:.1f} samples/s", best_));
        return true;
    }

    // With the number of workers that this loader was measured to need.
    void plan_again() {
        for (const Finding& finding : out_.findings) {
            for (const SettingChange& change : finding.settings) {
                auto workers =
                    change.key == "num_workers" ? parse_integer(change.value) : std::nullopt;
                if (!workers || *workers < 1) continue;
                FixMachine machine = settings_.machine;
                machine.workers = static_cast<int>(*workers);
                machine.is_watched = true;
                answer_.plan = plan_fixes(answer_.facts, machine, question_);
                keep_exact(reader_, answer_.facts, question_, answer_.plan);
                return;
            }
        }
    }

    void repeat_baseline() {
        if (!has_time()) return;
        TrialResult again = trial({}, of_search());
        if (!again.ok()) return;
        guard_.add_before(again.record);
        double rate = again.samples_per_second->per_second;
        say(fmt::format("as it is, measured again: {:.1f} samples/s", rate));
        // The faster of two: a gain is over the best that the job does by itself.
        best_ = std::max(best_, rate);
    }

    static std::string name_of(const Changes& changes) {
        std::vector<std::string> ids;
        for (const FixProposal* change : changes) ids.push_back(change->id);
        return join(ids, " + ");
    }

    void note_all(const Changes& changes, const FixOutcome& outcome) {
        for (const FixProposal* change : changes) answer_.outcomes[change->id] = outcome;
    }

    // What they are worth beside those that were kept before; apart where they do not gain
    // together.
    void try_group(const Changes& together) {
        if (!has_time()) {
            note_all(together, {"not tried", std::nullopt,
                                out_.trials < kMostTrials ? "no time was left for it"
                                                          : "enough was tried before it"});
            if (!stopped() && out_.trials < kMostTrials) answer_.longer = budget_.longer();
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

    FixOutcome measure(const Changes& added) {
        Changes changes = kept_;
        changes.insert(changes.end(), added.begin(), added.end());
        TrialResult result = guarded_trial(changes, of_search());
        if (!result.ok()) {
            FixOutcome out{word_of(result.outcome), std::nullopt, result.message};
            say(fmt::format("{}: {} ({})", name_of(added), out.word, result.message));
            return out;
        }
        double rate = result.samples_per_second->per_second;
        std::string again;
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
        say(fmt::format("{}: {:.1f} samples/s, {:+.0f} %{}: {}", name_of(added), rate,
                        100 * (*out.ratio - 1), again, out.word));
        return out;
    }

    // The batch size as `tune` finds it, beside what was kept.
    void find_batch() {
        BatchPlace place = batch_place(answer_.facts, question_);
        if (place.size <= 0) {
            answer_.plan.refused.push_back(
                {{.file = answer_.facts.script}, "batch_size", place.why});
            return;
        }
        if (!has_time()) return;
        BatchLimits limits{.min = std::min<std::int64_t>(place.size, settings_.batch.min),
                           .max = std::max(place.size, settings_.batch.max),
                           .step = settings_.batch.step,
                           .probes_max = std::min(6, kMostTrials - out_.trials),
                           .climb_only = true};
        std::map<std::int64_t, double> rates;
        BatchAnswer found =
            find_batch_size(place.size, limits, {}, [&](const TrialRequest& wanted) -> TrialResult {
                auto size = parse_integer(value_of(wanted.settings, "batch_size"));
                if (!size || !has_time()) return {.outcome = TrialOutcome::not_run};
                auto proposal = batch_proposal(answer_.facts, question_, *size);
                if (!proposal) return {.outcome = TrialOutcome::not_run};
                Changes changes = kept_;
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
        double before = std::max(best_, rates.contains(place.size) ? rates[place.size] : 0);
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
        auto rate_of = [&](const Changes& changes) {
            return [&, changes]() -> std::optional<double> {
                Limits limits{budget_.proof_seconds(), budget_.most_for_run(seconds())};
                TrialResult result =
                    changes.empty() ? trial({}, limits) : guarded_trial(changes, limits);
                if (!result.ok()) {
                    if (!changes.empty() && !stopped()) broken = result.message;
                    return std::nullopt;
                }
                if (changes.empty()) {
                    guard_.add_before(result.record);
                } else {
                    compared = last_guard_;
                    out_.losses_after = loss_curve(result.record.steps);
                }
                say(fmt::format("  {}: {:.1f} samples/s", changes.empty() ? "before" : "after",
                                result.samples_per_second->per_second));
                return result.samples_per_second->per_second;
            };
        };
        ProofSettings proof;
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
        out_.seconds = seconds();
        out_.is_stopped = stopped();
        return std::move(out_);
    }

    FixAnswer& answer_;
    ProjectReader& reader_;
    const FixQuestion& question_;
    const FixTrialSettings& settings_;
    fs::path guarded_, inside_;  // what no trial may change, and where in it the job runs
    Signals interrupts_{Signals::Role::stop};
    TuneBudget budget_;
    TrainingGuard guard_;
    FixTrials out_;
    Changes kept_;
    double best_ = 0;  // samples/s
    std::string log_, last_guard_;
    bool changed_ = false;  // the last trial trained otherwise than before
    std::int64_t start_ns_ = now_ns();
};

}  // namespace

FixTrials try_fixes(FixAnswer& answer, ProjectReader& reader, const FixQuestion& question,
                    const FixTrialSettings& settings) {
    return Trier(answer, reader, question, settings).run();
}

void write_fixes(const FixPatch& patch, const FixQuestion& question, const fs::path& backup) {
    for (const EditedFile& file : patch.files) {
        if (read_if_there(question.folder / file.file) != file.before) {
            throw UserError({.where = {file.file},
                             .found = "the file was changed while the fix was tried",
                             .expected = "the file that was read",
                             .fix = "run fix again; the patch is in the output folder"});
        }
    }
    for (const EditedFile& file : patch.files) {
        fs::create_directories((backup / file.file).parent_path());
        write_file_whole(backup / file.file, file.before);
    }
    std::vector<const EditedFile*> written;
    try {
        for (const EditedFile& file : patch.files) {
            write_file_whole(question.folder / file.file, file.after);
            written.push_back(&file);
        }
    } catch (...) {
        // All of them or none.
        for (const EditedFile* file : written)
            write_file_whole(question.folder / file->file, file->before);
        throw;
    }
}

}  // namespace saturate
