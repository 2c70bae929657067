// SPDX-License-Identifier: Apache-2.0
// Settings of a user's own command. Settings named as {placeholders} are filled into the command.
// Settings that the shim of `run` can change inside a Python script go through --apply. Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tuning/trial.h"

namespace saturate {

// The placeholder for the command's configuration file.
inline constexpr std::string_view kConfigWord = "{config}";

// The settings (config/schema) that the command names as {placeholders}.
[[nodiscard]] std::set<std::string> placeholders(const std::vector<std::string>& command);

// The settings that a search may change: the placeholders and those that the shim can change. On a
// CPU, settings that only help a GPU are left out.
[[nodiscard]] std::set<std::string> tunable_settings(const std::vector<std::string>& command,
                                                     bool on_cpu);

struct CommandWords {
    std::vector<std::string> words;
    std::string apply;  // "num_workers=2,persistent_workers"; empty: nothing to apply
};

// Fills `start` and `changes` of the search into the command. Applies (--apply) only `changes`.
[[nodiscard]] CommandWords command_words(const std::vector<std::string>& command,
                                         const Assignment& start, const Assignment& changes);

// Facts about a script, from the python.json that `run` wrote while watching it.
struct ScriptFacts {
    Assignment values;       // settings of the loader that feeds the steps
    bool in_memory = false;  // the data set is rows of tensors in memory
};
[[nodiscard]] ScriptFacts script_facts(const Json& python);

}  // namespace saturate
