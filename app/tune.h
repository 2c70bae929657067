// SPDX-License-Identifier: Apache-2.0
// The measured search as `tune` and `optimize --benchmark` run it: trials as child processes, a
// loss guard and a proof, everything kept in one folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "tuning/loss_guard.h"
#include "tuning/proof.h"
#include "tuning/search.h"

namespace saturate {

struct TuneRequest {
    std::string config;                // of `train`; empty with a command
    std::vector<std::string> command;  // words with {placeholders}; empty with a configuration
    Assignment start;                  // values in force, by canonical name
    std::string device = "auto";
    TuningFacts facts;
    BatchLimits batch;
    double budget_seconds = 300;
    std::filesystem::path folder;  // new: trials, proof.json, tune.json
    bool fresh = false;            // do not use trials that were made before
    bool quiet = false;
    std::optional<std::string> serve;  // a live page of the trials, at this address
};

struct TuneAnswer {
    SearchAnswer search;
    std::optional<LossGuard> guard;
    std::optional<Proof> proof;
    bool interrupted = false;
};

class Arguments;
// Settings, limits and facts out of a command line of tune or optimize; the folder is still empty.
[[nodiscard]] TuneRequest tune_request(const Arguments& arguments);

// runs/tune-<time>
[[nodiscard]] std::filesystem::path tune_folder();

// Throws UserError: another search works on the device, no trial ran, or the budget is too small.
[[nodiscard]] TuneAnswer tune(const TuneRequest& request);

[[nodiscard]] Json to_json(const TuneAnswer& answer);

}  // namespace saturate
