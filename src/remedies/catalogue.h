// SPDX-License-Identifier: Apache-2.0
// The one catalogue of what cures what. A row is a remedy: the causes it relieves, its value by the
// facts or the reason against it, its level, what to expect, and its ways in: key of a
// configuration (config/aliases.csv has the dialects' names), setting of the engine, edit of a
// source file, name in the shim of `run --apply`. Read by optimize (advise.h), diagnosis, tuning,
// the shim (shim_table()) and fix. A new remedy is a row and its function in one of
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

// The part of a step that a remedy makes shorter: it can gain no more than that.
enum class Relief { unknown, input, copy, log, host, device, pause };

// What a remedy says to these facts.
struct Proposal {
    std::optional<std::string> value;    // as `train --set` takes it; absent: nothing is to change
    std::string reason;                  // why, or why not; one line
    std::string expect;                  // instead of the row's own
    Assignment with = {};                // what goes along, by canonical name
    std::vector<std::string> also = {};  // further values worth a trial
    std::string wrong_now = {};          // what is wrong with the value that is there ...
    std::string fix = {};                // ... and what to do, where no value does it
    std::optional<Level> level = {};     // where it is another than the row's
    bool remove = false;                 // the key is to go
};

// How `run --apply` knows it.
struct ShimWay {
    // By which words it is asked for, besides its own name.
    enum class Set { by_name, numerics, safe };
    std::string_view name = {};  // empty: the shim cannot
    Set set = Set::by_name;
    bool has_value = false;  // name=value
    bool for_need = false;   // --apply auto: a run can measure whether it is needed
};

// How it is written into a Python source.
struct SourceWay {
    enum class Kind {
        none,
        keyword,         // of a call of `target`: DataLoader(num_workers=4)
        statement,       // a line of its own before the loop
        after_model,     // a line behind the one that makes the model
        around_forward,  // a block around forward and loss
        loop,            // readings of values in the step loop
        environment,     // a variable of the job's environment
        declared,        // only where its value is declared: key, option or constant
        by_hand,         // `text` says what to do
    };
    Kind kind = Kind::none;
    std::string_view target = {};  // DataLoader, optimizer, zero_grad, to
    std::string_view text = {};    // the keyword, the line, the variable; {} is the value
};

struct Remedy {
    std::string_view name;           // of the setting, as the schema and the search have it
    std::optional<Setting> setting;  // absent: only a script has it
    Level own_level = Level::safe;   // of those without a setting
    std::string_view causes = {};    // "F01 F02": ids of findings
    Relief relief = Relief::unknown;
    bool for_gpu = false;        // does nothing on a CPU
    bool is_measured = false;    // a trial of seconds tells what it is worth
    std::string_view pair = {};  // tried together with this one where neither gains alone
    ShimWay shim = {};
    SourceWay source = {};
    std::string_view expect = {};
    Proposal (*propose)(const Facts& facts) = nullptr;

    [[nodiscard]] Level level() const { return setting ? info_of(*setting).level : own_level; }
    [[nodiscard]] bool relieves(std::string_view finding) const;
};

// In the order in which optimize goes: each builds on the changes of those before it.
[[nodiscard]] std::span<const Remedy> remedies();
// By the name of its setting or in the shim; null: there is none.
[[nodiscard]] const Remedy* find_remedy(std::string_view name);
[[nodiscard]] const Remedy* find_remedy(Setting setting);

// A remedy that has something to change, with what it says.
struct Choice {
    const Remedy* remedy = nullptr;
    Proposal proposal;
};
// Those that relieve the finding and have a value for these facts, the first the most to the point.
[[nodiscard]] std::vector<Choice> choices_for(std::string_view finding, const Facts& facts);

// What optimize estimates, diagnose names and tune tries first: the only place that counts workers.
[[nodiscard]] int worker_count(const Facts& facts);

// _saturate_shim/remedies.py: names and levels of the changes that the shim can make.
[[nodiscard]] std::string shim_table();

}  // namespace saturate
