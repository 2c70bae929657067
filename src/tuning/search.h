// SPDX-License-Identifier: Apache-2.0
// The measured search: baseline, the bound without the loader, then the biggest cause names the
// next trial; what helps beyond the noise is kept; when the cause moves, the search follows it.
// Ends when no cause above 3 % is left, when the budget is spent, or when it is stopped; the best
// so far is always there.
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
    Assignment change;  // over what was in force then
    TrialOutcome outcome = TrialOutcome::ok;
    std::string message;  // why it failed; of pauses, what was measured
    std::optional<Rate> rate;
    double ratio = 1;  // against what was in force
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
    bool can_leave_loader_out = true;  // else the bound is what the wait leaves
    bool can_measure_pauses = false;   // evaluations and checkpoints, in a trial that has them
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
    std::vector<Tried> trials;          // all, in order; the first is the baseline
    Assignment best;                    // changes over the configuration
    std::optional<BatchAnswer> batch;
    std::string ended;  // "no cause above 3 % is left", "the budget is spent", ...
    std::vector<std::string> notes;
    std::set<std::string> unreachable;  // worth a trial, but nothing here can change them
};

// A setting of the answer. Where it changed more than once the effects multiply.
struct KeptSetting {
    std::string key, value, reason;
    std::optional<double> ratio;  // measured; absent: it came along with another
    std::string with;             // that other
    double rate = 0;              // samples/s once it was in force; 0: unknown
};
[[nodiscard]] std::vector<KeptSetting> kept_settings(const SearchAnswer& answer);

[[nodiscard]] SearchAnswer search(const SearchSettings& settings, const RunTrial& run);

[[nodiscard]] Json to_json(const SearchAnswer& answer);

}  // namespace saturate
