// SPDX-License-Identifier: Apache-2.0
// The measured search from beginning to end: search, loss guard, proof. It asks for trials, the
// time and whether to stop through functions, so that tests conduct a search without a process;
// process/tune.h gives it trials that are child processes.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tuning/config_file.h"
#include "tuning/job.h"
#include "tuning/loss_guard.h"
#include "tuning/proof.h"
#include "tuning/search.h"
#include "tuning/use.h"

namespace saturate {

struct TuneRequest {
    Job job;
    std::optional<ConfigFile> file;  // of a command that reads one
    Assignment start;                // values in force, by canonical name
    std::string device = "auto";
    Facts facts;
    BatchLimits batch;
    double budget_seconds = 300;
    std::filesystem::path folder;  // new: trials, proof.json, tune.json
    bool fresh = false;            // do not use trials that were made before
    int proof_pairs_max = 15;

    [[nodiscard]] bool is_simulated() const { return device.starts_with("sim:"); }
};

struct TuneAnswer {
    SearchAnswer search;
    std::optional<LossGuard> guard;
    std::optional<Proof> proof;
    DeviceUse before, after;  // of the proof's runs
    double seconds = 0;       // of all of it
    bool interrupted = false;
};

// What the conductor has around it.
struct TuneWorld {
    // `stage` says what it is for: "search", "loss" or "proof".
    std::function<TrialResult(const TrialRequest&, std::string_view stage)> run;
    std::function<double()> seconds;   // since the search began
    std::function<bool()> is_stopped;  // Ctrl-C
    // What else uses the machine, as a sentence; empty: nothing to speak of. May be null.
    std::function<std::string()> busy;
    std::function<void(int number, const Tried&)> on_trial;
    std::function<void(const std::string&)> on_line;  // what it does next
};

// Throws UserError: the budget is too small, or the job does not run as it stands.
[[nodiscard]] TuneAnswer conduct(const TuneRequest& request, const TuneWorld& world);

// Whether these changes may move the loss and this job can tell it: a simulated device learns
// nothing, and a command keeps its losses to itself.
[[nodiscard]] bool needs_loss_guard(const TuneRequest& request, const Assignment& change);

// Throws UserError when no search fits into it.
void check_budget(double seconds);

[[nodiscard]] Json to_json(const TuneAnswer& answer);

}  // namespace saturate
