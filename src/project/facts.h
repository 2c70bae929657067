// SPDX-License-Identifier: Apache-2.0
// What the reader found in the user's project (docs/project-facts.md), as plain values. Unknown is
// nullopt, never false.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "config/document.h"
#include "project/python_text.h"

namespace saturate {

struct SourcePlace {
    std::string file;  // relative to the folder the command runs in
    int line = 0;
    ByteSpan span;
    [[nodiscard]] Place place() const { return {file, line}; }
};

enum class Certainty { unknown, likely, certain };

struct FactSource {
    std::string file;
    std::string role;
    std::string newline;
    std::string sha256;
    std::string torch;                      // the name torch has in it; empty: none
    std::optional<ByteSpan> after_imports;  // the last of the leading imports
    std::string problem;                    // empty: read
    int problem_line = 0;
};

// A key that the program reads from a configuration.
struct FactKey : SourcePlace {
    KeyPath path;
    bool is_there = false;
    std::string type;  // that the program expects: int, float, bool, str; empty: not known
};

struct FactConfig {
    std::string file;
    std::string format;
    std::string how;
    std::string sha256;
    Certainty certainty = Certainty::unknown;
    std::string problem;
    std::vector<FactKey> keys;
};

struct FactValue {
    ByteSpan span;
    int line = 0;
    std::string text;
    std::string type;  // int, float, bool, str, none, list, dict, expression
    Json literal;      // null: not one
};

struct FactDeclaration : SourcePlace {
    int id = -1;
    std::string kind;
    std::string setting;
    std::string key;
    KeyPath keys;  // of a configuration: where it stands in its file
    std::optional<FactValue> value;
    std::optional<std::string> given;  // what the command says instead of the default
    std::size_t reads = 0;
    std::vector<SourcePlace> writes;
    std::string escapes;
};

struct FlowSource {
    int declaration = -1;
    Certainty certainty = Certainty::unknown;
    bool is_derived = false;  // it goes into what is computed there, and is not the value itself
};

struct FactArgument : FactValue {
    std::string name;
    std::optional<int> position;
    std::vector<FlowSource> sources;
};

struct FactSpread {
    std::string text;
    std::vector<std::pair<std::string, int>> keys;  // with the declaration, -1: unknown
    bool is_open = true;
};

struct DatasetFacts {
    std::string name;
    std::optional<bool> holds_gpu, handle_in_init, iterable, ready_batches, numpy_batches;
    std::vector<SourcePlace> changed_by;
};

struct FactCall : SourcePlace {
    int id = -1;
    std::string kind;
    std::string callee;
    Certainty certainty = Certainty::unknown;
    std::vector<FactArgument> arguments;
    std::vector<FactSpread> spreads;
    bool may_insert = false;
    std::optional<KeyPath> config;  // of a _target_: the map that holds its arguments
    std::string scope;
    std::optional<ByteSpan> statement;
    std::optional<int> in_step;
    bool in_epoch = false;
    std::string when;
    // of a loader
    std::string role;
    DatasetFacts dataset;
    bool has_sampler = false;
    // of an optimizer
    std::string chosen, groups;
    std::optional<bool> fused_known;
    std::optional<bool> moved;  // the model is seen to be on the device before
    // of a copy
    std::string of;
    bool from_loader = false, made_here = false;
    // of a flag
    std::string flag, flag_value;
    // of an evaluation or a checkpoint
    std::string every;
    std::string interval;
    std::vector<FlowSource> interval_sources;

    [[nodiscard]] const FactArgument* argument(std::string_view name) const;
    // The keyword may come in through ** or *.
    [[nodiscard]] bool may_hold(std::string_view name) const;
    [[nodiscard]] std::string_view short_callee() const;  // "DataLoader"
};

// A loader, an optimizer, autocast, a scaler or torch.compile() that the settings of this command
// leave out.
struct FactAlternative : SourcePlace {
    std::string kind, callee, role;
    int declaration = -1;  // of the one setting that would turn it on
};

struct FactLoop : SourcePlace {
    int id = -1;
    std::string kind;
    std::string function;
    std::vector<SourcePlace> epochs;
    std::optional<int> loader, backward, step, zero_grad, optimizer;
    std::optional<SourcePlace> forward;  // the first call of the model
    std::optional<SourcePlace> swallows;
    std::string counter;
    std::optional<ByteSpan> compute;  // statements from the forward pass to the loss
    std::string compute_why;          // why there are none
    std::string loss;
    std::string model;                    // the name of what the optimizer trains
    std::optional<SourcePlace> model_at;  // the last statement that binds or moves it
};

struct FactUse : SourcePlace {
    std::string when, form;
};

struct FactWait : SourcePlace {
    std::optional<ByteSpan> statement;
    std::string statement_kind;
    std::string what, kind, when, interval, use;
    std::string value_text;
    ByteSpan value;
    int loop = -1;
    std::vector<SourcePlace> path;
    Certainty certainty = Certainty::unknown;
    std::string into;         // the name that `total += loss.item()` adds to; empty: none
    bool into_list = false;   // ... by append()
    bool is_count = false;    // ... whole numbers
    bool is_as_read = false;  // ... nothing but what was read
    std::vector<FactUse> uses;
    [[nodiscard]] bool is_said() const;  // in every step, as far as reading can tell
};

struct FactWithoutEffect : SourcePlace {
    int declaration = -1;
    std::string setting, kind, why, instead;
    std::optional<SourcePlace> at;
    Certainty certainty = Certainty::unknown;
};

struct FactTrap : SourcePlace {
    std::string kind, why;
    std::vector<std::string> forbids;
    std::vector<int> calls;
};

struct ProjectFacts {
    std::string python;  // version of the interpreter
    std::string command_kind, script, module_name, shell, command_problem;
    std::vector<std::string> arguments;  // of the program
    std::vector<FactSource> files;
    std::vector<FactConfig> configs;
    std::vector<FactDeclaration> declarations;
    std::vector<FactCall> calls;
    std::vector<FactAlternative> alternatives;
    std::vector<FactLoop> loops;
    std::vector<FactWait> waits;
    std::vector<FactWithoutEffect> without_effect;
    std::vector<FactTrap> traps;
    std::vector<std::string> frameworks;
    bool convolves = true;  // there may be convolutions in the model
    std::vector<std::string> limits;

    [[nodiscard]] const FactDeclaration* declaration(int id) const;
    [[nodiscard]] const FactCall* call(int id) const;
    [[nodiscard]] const FactLoop* loop(int id) const;
    [[nodiscard]] const FactSource* file(std::string_view name) const;
    [[nodiscard]] bool uses(std::string_view framework) const;
    // The trap that forbids this setting for this call (-1: anywhere); null: none.
    [[nodiscard]] const FactTrap* trap(std::string_view setting, int call) const;
};

// A program that reads a configuration file, and what it has no use for in it.
struct ConfigReaderFacts {
    std::string script;
    std::vector<FactKey> keys;
    std::vector<FactWithoutEffect> without_effect;
    std::vector<std::string> frameworks;
};

// The reader's answers. Throw Bug when they are not of the schema we know.
[[nodiscard]] ProjectFacts parse_facts(const Json& answer);
[[nodiscard]] std::vector<ConfigReaderFacts> parse_readers(const Json& answer);

}  // namespace saturate
