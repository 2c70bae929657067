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
#include "tuning/use.h"

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
    int proof_pairs_max = 15;
};

struct TuneAnswer {
    SearchAnswer search;
    std::optional<LossGuard> guard;
    std::optional<Proof> proof;
    DeviceUse before, after;  // of the proof's runs
    double seconds = 0;       // of all of it
    bool interrupted = false;
};

class Arguments;
// Settings, limits and facts out of a command line of tune or optimize; the folder is still empty.
[[nodiscard]] TuneRequest tune_request(const Arguments& arguments);

// The same for a configuration and a device ("auto", "cpu", "cuda:0", "sim:RTX 4090").
[[nodiscard]] TuneRequest tune_request(const std::string& config, const std::string& device,
                                       Level level);

// Data of a reference job that is to lie where `data make` writes it, and does not yet: made, and
// said on stderr. A path of the user's own is left to be found missing.
void make_missing_data(const std::string& config, bool quiet);

// runs/<name>-<time>
[[nodiscard]] std::filesystem::path tune_folder(const std::string& name);

// Throws UserError: another search works on the device, no trial ran, or the budget is too small.
[[nodiscard]] TuneAnswer tune(const TuneRequest& request);

[[nodiscard]] Json to_json(const TuneAnswer& answer);

}  // namespace saturate
