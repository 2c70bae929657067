// SPDX-License-Identifier: Apache-2.0
#include "process/fix_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/host.h"
#include "base/text.h"
#include "process/trial_command.h"
#include "process/trial_process.h"
#include "project/watched_calls.h"

namespace saturate {

namespace fs = std::filesystem;

namespace {

// This long without a step ends a run; a larger budget lets a job evaluate for longer.
constexpr double kSilenceSeconds = 120;

// How many folders up the job's sources, configurations and command name files.
int named_above(const MeasuredJob& job, const ProjectFacts& facts) {
    int out = 0;
    for (const std::string& word : job.command) out = std::max(out, folders_above(word));
    for (const FactSource& source : facts.files)
        out = std::max(out, folders_above(read_if_there(job.project / source.file)));
    for (const FactConfig& config : facts.configs)
        out = std::max(out, folders_above(read_if_there(job.project / config.file)));
    return out;
}

// Folders outside of the guarded one that the job wrote to: the trial cannot redirect these writes.
// Temporary files and ~/.cache are expected and do not count.
std::vector<std::string> written_outside(const Json& python, const fs::path& guarded) {
    std::vector<fs::path> apart = {guarded, fs::canonical(fs::temp_directory_path())};
    if (const char* home = std::getenv("HOME")) apart.push_back(fs::path(home) / ".cache");
    return folders_written(python, apart);
}

}  // namespace

std::string label_of(const FixChanges& changes) {
    std::vector<std::string> settings;
    for (const FixProposal* change : changes)
        if (std::ranges::find(settings, change->setting) == settings.end())
            settings.push_back(change->setting);
    if (settings.empty()) return "unchanged";
    constexpr std::size_t kMost = 3;
    std::size_t left = settings.size() > kMost ? settings.size() - (kMost - 1) : 0;
    settings.resize(settings.size() - left);
    std::string out = join(settings, ", ");
    return left > 0 ? fmt::format("{} and {} more", out, left) : out;
}

FixRunner::FixRunner(FixRunnerSettings settings, const ProjectFacts& facts, ProjectReader& reader,
                     const FixQuestion& question)
    : settings_(std::move(settings)),
      facts_(facts),
      reader_(reader),
      question_(question),
      guarded_(guarded_around(settings_.job.project, named_above(settings_.job, facts))),
      inside_(fs::canonical(settings_.job.project).lexically_relative(guarded_)) {
    SATURATE_CHECK(settings_.job.has_project(), "fix runs a command in its project");
}

TrialResult FixRunner::run(const FixChanges& changes, const FixRunLimits& limits) {
    std::vector<ScratchFile> edited;
    if (!changes.empty()) {
        FixPatch patch = make_patch(reader_, facts_, question_, changes);
        if (!patch.problem.empty())
            return {.outcome = TrialOutcome::failed, .message = patch.problem};
        for (const EditedFile& file : patch.files) edited.push_back({file.file, file.after});
    }
    ScratchTree tree({.folder = guarded_,
                      .inside = inside_,
                      .parent = {},
                      .edited = edited,
                      .writable = fs::absolute(settings_.output)});
    unguarded_ = tree.unguarded();
    fs::path folder = fs::absolute(settings_.output) / fmt::format("trial-{}", ++runs_);
    log_ = folder.string() + ".log";
    std::vector<std::string> command = {own_program(), "run", "--profile", "off", "-o", folder};
    if (settings_.with_losses) command.emplace_back("--losses");
    command.emplace_back("--");
    for (const std::string& word : command_in_tree(tree, settings_.job.command))
        command.push_back(word);
    TrialResult result = run_trial_process({.command = command,
                                            .name = label_of(changes),
                                            .run_folder = folder,
                                            .log = log_,
                                            .seconds = limits.measured,
                                            .seconds_max = limits.most,
                                            .start_seconds_max = limits.most,
                                            .silence_seconds_max =
                                                std::max(kSilenceSeconds, limits.most / 4),
                                            .least_steps = limits.least_steps,
                                            .ready_batches = limits.ready_batches,
                                            .is_stopped = settings_.is_stopped,
                                            .guard = tree.guard()});
    made_ = tree.files_made();
    for (std::string& folder : written_outside(result.record.python, guarded_))
        outside_.insert(std::move(folder));
    return result;
}

}  // namespace saturate
