// SPDX-License-Identifier: Apache-2.0
// The catalogue of remedies. Each row has the causes that the remedy relieves, a function for its
// value or the reason against it, its level, the expected effect, and the ways to apply it: key of
// a configuration (config/aliases.csv has the dialects' names), setting of the engine, edit of a
// source file, name in the shim of `run --apply`. Read by optimize (advise.h), diagnosis, tuning,
// the shim (shim_table()) and fix. To add a remedy, add a row and its function in one of
// cures_*.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "remedies/facts.h"

namespace saturate {

// The part of a step that a remedy shortens. It can gain no more than that part.
enum class Relief { unknown, input, copy, log, host, device, pause };

// The answer of a remedy for given facts.
struct Proposal {
    std::optional<std::string> value;    // in the syntax of `train --set`; absent: no change
    std::string reason;                  // why, or why not; one line
    std::string expect;                  // replaces the row's text; "-": none
    Assignment with = {};                // accompanying settings, by canonical name
    std::vector<std::string> also = {};  // further values worth a trial
    std::string wrong_now = {};          // what is wrong with the present value ...
    std::string fix = {};                // ... and what to do, if no value helps
    std::optional<Level> level = {};     // if it differs from the row's
    bool remove = false;                 // remove the key
};

// How `run --apply` makes the change.
struct ShimWay {
    // The sets that include this remedy. Its own name always works.
    enum class Set { by_name, numerics, safe };
    std::string_view name = {};  // empty: the shim cannot do it
    Set set = Set::by_name;
    bool has_value = false;  // name=value
    bool for_need = false;   // --apply auto: a run can measure the need
};

// How fix writes the change into a Python source.
struct SourceWay {
    enum class Kind {
        none,
        keyword,         // of a call to `target`: DataLoader(num_workers=4)
        statement,       // a line before the loop
        after_model,     // a line after the one that makes the model
        around_forward,  // a block around forward pass and loss
        loop,            // reads of values in the step loop
        environment,     // a variable of the job's environment
        declared,        // only at its declaration: key, option or constant
        by_hand,         // `text` tells the user what to do
    };
    Kind kind = Kind::none;
    std::string_view target = {};  // DataLoader, optimizer, zero_grad, to
    std::string_view text = {};    // the keyword, the line, the variable; {} is the value
};

struct Remedy {
    std::string_view name;           // of the setting, as in the schema and the search
    std::optional<Setting> setting;  // absent: only scripts have it
    Level own_level = Level::safe;   // if there is no setting
    std::string_view causes = {};    // "F01 F02": ids of findings
    Relief relief = Relief::unknown;
    bool for_gpu = false;        // does nothing on a CPU
    bool is_measured = false;    // a trial of seconds can measure the gain
    std::string_view pair = {};  // tried with this one if neither gains alone
    ShimWay shim = {};
    SourceWay source = {};
    std::string_view expect = {};
    Proposal (*propose)(const Facts& facts) = nullptr;

    [[nodiscard]] Level level() const { return setting ? info_of(*setting).level : own_level; }
    [[nodiscard]] bool relieves(std::string_view finding) const;
};

// In the order of optimize: each remedy builds on the changes before it.
[[nodiscard]] std::span<const Remedy> remedies();
// Finds a remedy by the name of its setting or by its name in the shim; null: none.
[[nodiscard]] const Remedy* find_remedy(std::string_view name);
[[nodiscard]] const Remedy* find_remedy(Setting setting);

// A remedy that has something to change, and its proposal.
struct Choice {
    const Remedy* remedy = nullptr;
    Proposal proposal;
};
// Returns the remedies that relieve the finding and have a value for these facts, the most specific
// first.
[[nodiscard]] std::vector<Choice> choices_for(std::string_view finding, const Facts& facts);

// The number of workers, for optimize, diagnose and tune. No other code computes it.
[[nodiscard]] int worker_count(const Facts& facts);

// The text of _saturate_shim/remedies.py: names and levels of the changes that the shim can make.
[[nodiscard]] std::string shim_table();

}  // namespace saturate
