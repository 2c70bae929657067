// SPDX-License-Identifier: Apache-2.0
// The measured search. Measures the baseline and the bound without the loader, then tries what
// relieves the biggest cause. Keeps a change that helps beyond the noise, and follows the biggest
// cause when it moves. Ends when no cause above 3 % is left, when the budget is spent, or when it
// is stopped. The best settings so far are always available.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "tuning/batch_size.h"
#include "tuning/moves.h"
#include "tuning/trial.h"

namespace saturate {

struct Tried {
    std::string cause;
    std::string reason;
    Assignment change;  // relative to the settings then in force
    TrialOutcome outcome = TrialOutcome::ok;
    std::string message;  // why it failed; for pauses: what was measured
    std::optional<Rate> rate;
    double ratio = 1;  // to the rate of the settings in force
    bool kept = false;
    bool open = false;  // a close call, to be decided later
    bool from_cache = false;
    double seconds = 0;
};

struct SearchSettings {
    Facts facts;
    Assignment start;  // values of the configuration, by canonical name
    BatchLimits batch;
    bool tune_batch = true;
    bool can_leave_loader_out = true;  // else the bound is computed from the wait for data
    bool can_measure_pauses = false;   // trials can contain evaluations and checkpoints
    std::set<std::string> tunable;     // settings that may change; empty: all of them
    double cause_least = 0.03;
    double trial_seconds = 8;
    std::function<bool()> is_stopped;            // asked before each trial; may be null
    std::function<double()> seconds_left;        // of the budget; null: no end
    std::function<void(const Tried&)> on_trial;  // progress; may be null
};

struct SearchAnswer {
    std::optional<Rate> baseline, best_rate;
    std::optional<double> upper_bound;  // samples/s of the baseline without its loader
    std::vector<Tried> trials;          // in order; the first is the baseline
    Assignment best;                    // changes to the configuration
    std::optional<BatchAnswer> batch;
    std::string ended;  // "no cause above 3 % is left", "the budget is spent", ...
    std::vector<std::string> notes;
    std::set<std::string> unreachable;  // worth a trial, but cannot be changed here
};

// One setting of the answer. If the search changed it more than once, `ratio` is the product.
struct KeptSetting {
    std::string key, value, reason;
    std::optional<double> ratio;  // measured; absent: changed together with `with`
    std::string with;             // the other setting
    double rate = 0;              // samples/s once it was in force; 0: unknown
};
[[nodiscard]] std::vector<KeptSetting> kept_settings(const SearchAnswer& answer);

[[nodiscard]] SearchAnswer search(const SearchSettings& settings, const RunTrial& run);

[[nodiscard]] Json to_json(const SearchAnswer& answer);

}  // namespace saturate
