// SPDX-License-Identifier: Apache-2.0
// Settings of a command that is not ours: those that stand in it as {placeholders} are filled in,
// those that the shim of `run` can change inside a Python script go through --apply. Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tuning/trial.h"

namespace saturate {

// Where a command names its configuration file.
inline constexpr std::string_view kConfigWord = "{config}";

// The settings (config/schema) that the command names in braces.
[[nodiscard]] std::set<std::string> placeholders(const std::vector<std::string>& command);

// What may change: the placeholders, and what needs none. On a CPU what only helps a GPU is left
// out.
[[nodiscard]] std::set<std::string> tunable_settings(const std::vector<std::string>& command,
                                                     bool on_cpu);

struct CommandWords {
    std::vector<std::string> words;
    std::string apply;  // "num_workers=2,persistent_workers"; empty: nothing
};

// `start` and `changes` as the search has them; what stands in `start` alone is not applied.
[[nodiscard]] CommandWords command_words(const std::vector<std::string>& command,
                                         const Assignment& start, const Assignment& changes);

// What a script that `run` watched uses, from its python.json.
struct ScriptFacts {
    Assignment values;       // of the loader that feeds the steps
    bool in_memory = false;  // its data set is rows of tensors in memory
};
[[nodiscard]] ScriptFacts script_facts(const Json& python);

}  // namespace saturate
