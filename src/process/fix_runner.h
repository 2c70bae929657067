// SPDX-License-Identifier: Apache-2.0
// One run of the user's command with changes of its files, in a scratch tree, as a trial of
// seconds. The user's own files stay as they are.
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "process/scratch_tree.h"
#include "project/fix_answer.h"
#include "tuning/job.h"
#include "tuning/trial.h"

namespace saturate {

using FixChanges = std::vector<const FixProposal*>;

struct FixRunnerSettings {
    Job job;                       // a command with its project
    std::filesystem::path output;  // records and logs go below it
    bool with_losses = false;      // of a GPU, also those that the script does not read itself
    std::function<bool()> is_stopped;
};

struct FixRunLimits {
    double measured = 0;             // seconds of steady steps
    double most = 0;                 // from start to end
    std::int64_t least_steps = 0;    // however well the rate is known
    std::int64_t ready_batches = 0;  // that its loader may make ahead
};

class FixRunner {
  public:
    FixRunner(FixRunnerSettings settings, const ProjectFacts& facts, ProjectReader& reader,
              const FixQuestion& question);

    TrialResult run(const FixChanges& changes, const FixRunLimits& limits);

    [[nodiscard]] int runs() const { return runs_; }
    // The folder below which no run changes anything.
    [[nodiscard]] const std::filesystem::path& guarded() const { return guarded_; }
    // Folders that runs wrote to all the same.
    [[nodiscard]] const std::set<std::string>& outside() const { return outside_; }
    // Of the last run.
    [[nodiscard]] const std::string& log() const { return log_; }
    [[nodiscard]] const FilesMade& files_made() const { return made_; }
    [[nodiscard]] const std::string& unguarded() const { return unguarded_; }

  private:
    FixRunnerSettings settings_;
    const ProjectFacts& facts_;
    ProjectReader& reader_;
    const FixQuestion& question_;
    std::filesystem::path guarded_, inside_;  // what no run may change, and where in it the job is
    int runs_ = 0;
    std::string log_, unguarded_;
    std::set<std::string> outside_;
    FilesMade made_;
};

}  // namespace saturate
