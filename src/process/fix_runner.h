// SPDX-License-Identifier: Apache-2.0
// Runs the user's command with changed files in a scratch tree, as a trial of seconds. The user's
// own files stay unchanged.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "process/scratch_tree.h"
#include "project/fix_answer.h"
#include "tuning/measured_job.h"
#include "tuning/trial.h"

namespace saturate {

using FixChanges = std::vector<const FixProposal*>;

// "num_workers, log_interval and 2 more"
[[nodiscard]] std::string label_of(const FixChanges& changes);

struct FixRunnerSettings {
    MeasuredJob job;               // a command with its project
    std::filesystem::path output;  // parent folder of records and logs
    bool with_losses = false;      // on a GPU, also losses that the script does not read itself
    std::function<bool()> is_stopped;
};

struct FixRunLimits {
    double measured = 0;             // seconds of steady steps
    double most = 0;                 // whole run, from start to end
    std::int64_t least_steps = 0;    // even if the rate is known earlier
    std::int64_t ready_batches = 0;  // that the loader may prepare ahead
};

class FixRunner {
  public:
    FixRunner(FixRunnerSettings settings, const ProjectFacts& facts, ProjectReader& reader,
              const FixQuestion& question);

    TrialResult run(const FixChanges& changes, const FixRunLimits& limits);

    [[nodiscard]] int runs() const { return runs_; }
    // Runs change nothing below this folder.
    [[nodiscard]] const std::filesystem::path& guarded() const { return guarded_; }
    // Folders outside of it that runs wrote to.
    [[nodiscard]] const std::set<std::string>& outside() const { return outside_; }
    // Facts about the last run.
    [[nodiscard]] const std::string& log() const { return log_; }
    [[nodiscard]] const FilesMade& files_made() const { return made_; }
    [[nodiscard]] const std::string& unguarded() const { return unguarded_; }

  private:
    FixRunnerSettings settings_;
    const ProjectFacts& facts_;
    ProjectReader& reader_;
    const FixQuestion& question_;
    std::filesystem::path guarded_, inside_;  // kept unchanged; the job's folder in it
    int runs_ = 0;
    std::string log_, unguarded_;
    std::set<std::string> outside_;
    FilesMade made_;
};

}  // namespace saturate
