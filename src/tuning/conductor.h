// SPDX-License-Identifier: Apache-2.0
// Runs the measured search from beginning to end: search, loss guard, proof. Trials, the clock and
// the stop signal are functions, so that tests need no process. process/tune.h passes trials that
// are child processes.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tuning/config_file.h"
#include "tuning/loss_guard.h"
#include "tuning/measured_job.h"
#include "tuning/proof.h"
#include "tuning/search.h"
#include "tuning/use.h"

namespace saturate {

struct TuneRequest {
    MeasuredJob job;
    std::optional<ConfigFile> file;  // the file that the command reads, if any
    Assignment start;                // values in force, by canonical name
    std::string device = "auto";
    Facts facts;
    BatchLimits batch;
    double budget_seconds = 300;
    std::filesystem::path folder;  // a new folder for trials, proof.json, tune.json
    bool fresh = false;            // do not reuse results of earlier trials
    int proof_pairs_max = 15;

    [[nodiscard]] bool is_simulated() const { return device.starts_with("sim:"); }
};

struct TuneAnswer {
    SearchAnswer search;
    std::optional<LossGuard> guard;
    std::optional<Proof> proof;
    DeviceUse before, after;  // over the runs of the proof
    double seconds = 0;       // of the whole search
    bool interrupted = false;
};

// Functions that connect the conductor to the outside.
struct TuneWorld {
    // `stage` is the purpose of the trial: "search", "loss" or "proof".
    std::function<TrialResult(const TrialRequest&, std::string_view stage)> run;
    std::function<double()> seconds;   // since the search began
    std::function<bool()> is_stopped;  // Ctrl-C
    // Returns a sentence about what else uses the machine, or "". May be null.
    std::function<std::string()> busy;
    std::function<void(int number, const Tried&)> on_trial;
    std::function<void(const std::string&)> on_line;  // announces the next action
};

// Throws UserError if the budget is too small or if the job does not run with its own settings.
[[nodiscard]] TuneAnswer conduct(const TuneRequest& request, const TuneWorld& world);

// True if these changes may move the loss and separate runs can compare it. A simulated device
// learns nothing, and the losses of a user's command come from the runs of the proof instead.
[[nodiscard]] bool needs_loss_guard(const TuneRequest& request, const Assignment& change);

// Throws UserError if the budget is too small for any search.
void check_budget(double seconds);

[[nodiscard]] Json to_json(const TuneAnswer& answer);

}  // namespace saturate
