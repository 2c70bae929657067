// SPDX-License-Identifier: Apache-2.0
#include "process/fix_trials.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "process/scratch_tree.h"
#include "process/signals.h"
#include "process/trial_process.h"
#include "remedies/catalogue.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr double kGain = 1.03;   // less is not worth a change
constexpr double kMeasured = 5;  // seconds of steady steps per trial
constexpr int kMostTrials = 12;
constexpr double kProofShare = 0.5;  // of the budget, kept for the proof

class Trier {
  public:
    Trier(FixAnswer& answer, ProjectReader& reader, const FixQuestion& question,
          const FixTrialSettings& settings)
        : answer_(answer), reader_(reader), question_(question), settings_(settings) {}

    FixTrials run() {
        out_.baseline = trial({});
        out_.baseline_log = log_;
        if (!out_.baseline.ok()) return finish();
        best_ = out_.baseline.samples_per_second->per_second;
        say(fmt::format("as it is: {:.1f} samples/s", best_));
        for (const FixProposal& proposal : answer_.plan.proposals) try_one(proposal);
        if (!kept_.empty() && !stopped()) prove_kept();
        return finish();
    }

  private:
    [[nodiscard]] bool stopped() const { return interrupts_.stop_signal() != 0; }
    [[nodiscard]] double seconds() const { return static_cast<double>(now_ns() - start_ns_) / 1e9; }
    void say(const std::string& line) const {
        if (settings_.on_line) settings_.on_line(line);
    }

    TrialResult trial(const std::vector<const FixProposal*>& changes) {
        std::vector<ScratchFile> edited;
        if (!changes.empty()) {
            FixPatch patch = make_patch(reader_, answer_.facts, question_, changes);
            if (!patch.problem.empty())
                return {.outcome = TrialOutcome::failed, .message = patch.problem};
            for (const EditedFile& file : patch.files) edited.push_back({file.file, file.after});
        }
        ScratchTree tree(question_.folder, fs::temp_directory_path(), edited);
        out_.unguarded = tree.unguarded();
        std::string label = fmt::format("trial-{}", ++out_.trials);
        fs::path folder = fs::absolute(settings_.output) / label;
        log_ = folder.string() + ".log";
        // Trackers of experiments get no runs from trials.
        std::vector<std::string> command = {fs::read_symlink("/proc/self/exe").string(),
                                            "run",
                                            "--profile",
                                            "off",
                                            "-o",
                                            folder.string(),
                                            "--",
                                            "env",
                                            "WANDB_MODE=disabled",
                                            "MLFLOW_TRACKING_URI=file:///tmp/saturate-mlflow",
                                            "COMET_MODE=disabled"};
        for (const std::string& word : tree.command(settings_.command)) command.push_back(word);
        // The proof may go over the budget by what a run of the job takes, not by more.
        double left =
            std::max({30.0, 3 * out_.baseline.seconds, settings_.budget_seconds - seconds()});
        TrialResult result = run_trial_process({.command = command,
                                                .run_folder = folder,
                                                .log = log_,
                                                .seconds = kMeasured,
                                                .seconds_max = left,
                                                .start_seconds_max = left,
                                                .is_stopped = [this] { return stopped(); }});
        return result;
    }

    // What a setting is worth beside those that were kept before it.
    void try_one(const FixProposal& proposal) {
        FixOutcome& outcome = answer_.outcomes[proposal.id];
        const Remedy* remedy = find_remedy(proposal.setting);
        if (remedy && remedy->for_gpu && !settings_.has_gpu) {
            outcome.note = "it does nothing without a GPU, and there is none here";
            return;
        }
        bool is_late = seconds() > (1 - kProofShare) * settings_.budget_seconds;
        if (stopped() || is_late || out_.trials >= kMostTrials) {
            outcome.note = "no time was left for it";
            return;
        }
        std::vector<const FixProposal*> changes = kept_;
        changes.push_back(&proposal);
        TrialResult result = trial(changes);
        if (!result.ok()) {
            outcome = {result.outcome == TrialOutcome::not_run ? "not tried" : "failed",
                       std::nullopt, result.message};
            say(fmt::format("{}: {} ({})", proposal.id, outcome.word, result.message));
            return;
        }
        double rate = result.samples_per_second->per_second;
        outcome.ratio = rate / best_;
        outcome.word = rate >= kGain * best_   ? "kept"
                       : rate <= best_ / kGain ? "slower"
                                               : "no gain";
        say(fmt::format("{}: {:.1f} samples/s, {:+.0f} %: {}", proposal.id, rate,
                        100 * (*outcome.ratio - 1), outcome.word));
        if (outcome.word != "kept") return;
        kept_.push_back(&proposal);
        best_ = rate;
    }

    void prove_kept() {
        say("proof: before and after in turns");
        ProofSettings proof{.is_time_up = [this] { return seconds() > settings_.budget_seconds; }};
        auto rate_of = [this](const std::vector<const FixProposal*>& changes) {
            return [this, changes]() -> std::optional<double> {
                TrialResult result = trial(changes);
                if (!result.ok()) return std::nullopt;
                say(fmt::format("  {}: {:.1f} samples/s", changes.empty() ? "before" : "after",
                                result.samples_per_second->per_second));
                return result.samples_per_second->per_second;
            };
        };
        out_.proof = prove(proof, rate_of({}), rate_of(kept_), [this] { return stopped(); });
        out_.proof->loss_guard = "losses are not compared: a script's own losses are not recorded";
        if (out_.proof->verdict == Verdict::faster) return;
        for (const FixProposal* proposal : kept_) {
            answer_.outcomes[proposal->id].word = "no gain";
            answer_.outcomes[proposal->id].note = "the proof does not confirm the trial";
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
    Signals interrupts_{Signals::Role::stop};
    FixTrials out_;
    std::vector<const FixProposal*> kept_;
    double best_ = 0;  // samples/s
    std::string log_;
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
    for (const EditedFile& file : patch.files)
        write_file_whole(question.folder / file.file, file.after);
}

}  // namespace saturate
