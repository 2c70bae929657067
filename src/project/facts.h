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
    std::string torch;                      // name of torch in this file; empty: not imported
    std::optional<ByteSpan> after_imports;  // the last of the imports on top
    std::string problem;                    // why it could not be read; empty: it was
    int problem_line = 0;
};

// A key of a configuration that the program reads.
struct FactKey : SourcePlace {
    KeyPath path;
    bool is_there = false;
    std::string type;  // type the program expects: int, float, bool, str; empty: unknown
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
    Json literal;      // null: not a literal
};

struct FactDeclaration : SourcePlace {
    int id = -1;
    std::string kind;
    std::string setting;
    std::string key;
    KeyPath keys;  // of a configuration: the key's place in its file
    std::optional<FactValue> value;
    std::optional<std::string> given;  // the command's value, which replaces the default
    std::size_t reads = 0;
    bool is_in_branch = false;  // the source sets it only under a condition
    std::vector<SourcePlace> writes;
    std::string escapes;
};

struct FlowSource {
    int declaration = -1;
    Certainty certainty = Certainty::unknown;
    bool is_derived = false;  // true: the value is computed from this source
};

struct FactArgument : FactValue {
    std::string name;
    std::optional<int> position;
    std::vector<FlowSource> sources;
};

struct FactSpreadKey : SourcePlace {
    std::string name;
    std::string spread;     // the text behind **
    int declaration = -1;   // -1: unknown
    bool is_maybe = false;  // the key comes in, or gets this value, only under a condition
};

struct FactSpread {
    std::string text;
    std::vector<FactSpreadKey> keys;
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
    std::optional<KeyPath> config;  // of a _target_: the map with its arguments
    std::string scope;
    std::optional<ByteSpan> statement;
    std::optional<int> in_step;
    bool in_epoch = false;
    std::string when;
    // For a loader.
    std::string role;
    DatasetFacts dataset;
    bool has_sampler = false;
    // For an optimizer.
    std::string chosen, groups;
    std::optional<bool> fused_known;
    std::optional<bool> moved;  // true: the source moves the model to the device before this
    // For a copy.
    std::string of;
    bool from_loader = false, made_here = false;
    // For a flag.
    std::string flag, flag_value;
    // For an evaluation or a checkpoint.
    std::string every;
    std::string interval;
    std::vector<FlowSource> interval_sources;

    [[nodiscard]] const FactArgument* argument(std::string_view name) const;
    // What a ** is known to have under the name, or null.
    [[nodiscard]] const FactSpreadKey* spread_key(std::string_view name) const;
    // True if ** or * may pass the keyword.
    [[nodiscard]] bool may_hold(std::string_view name) const;
    [[nodiscard]] std::string_view short_callee() const;  // "DataLoader"
};

// A loader, an optimizer, autocast, a scaler or torch.compile() in the source that the command's
// settings switch off.
struct FactAlternative : SourcePlace {
    std::string kind, callee, role;
    int declaration = -1;  // the one setting that would switch it on
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
    std::string model;                    // name of the model that the optimizer trains
    std::optional<SourcePlace> model_at;  // last statement that assigns or moves the model
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
    std::string into;         // name in `total += loss.item()` that is added to; empty: none
    bool into_list = false;   // the name is a list with append()
    bool is_count = false;    // only whole numbers are added
    bool is_as_read = false;  // the value is added unchanged
    std::vector<FactUse> uses;
    std::string every;        // stands in `if step % every == 0`, where every is 1
    bool every_logs = false;  // ... and sets how often something is shown, by its name
    std::vector<FlowSource> every_sources;
    [[nodiscard]] bool is_said() const;  // waits in every step or in some steps
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
    bool convolves = true;  // false: no convolutions in the model
    std::vector<std::string> limits;

    [[nodiscard]] const FactDeclaration* declaration(int id) const;
    [[nodiscard]] const FactCall* call(int id) const;
    [[nodiscard]] const FactLoop* loop(int id) const;
    [[nodiscard]] const FactSource* file(std::string_view name) const;
    [[nodiscard]] bool uses(std::string_view framework) const;
    // The trap that rules out this setting for this call (call -1: for any call), or null.
    [[nodiscard]] const FactTrap* trap(std::string_view setting, int call) const;
};

// A program that reads a configuration file, and the keys in it that have no effect.
struct ConfigReaderFacts {
    std::string script;
    std::vector<FactKey> keys;
    std::vector<FactWithoutEffect> without_effect;
    std::vector<std::string> frameworks;
};

// Parse the reader's answers. Throw Bug if the schema is not the one we know.
[[nodiscard]] ProjectFacts parse_facts(const Json& answer);
[[nodiscard]] std::vector<ConfigReaderFacts> parse_readers(const Json& answer);

}  // namespace saturate
