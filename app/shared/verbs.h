// SPDX-License-Identifier: Apache-2.0
// The table of verbs, from which parsing, --help, suggestions, completion and docs are made.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saturate {

struct Option {
    std::string_view name;   // "--config"
    std::string_view value;  // "FILE"; empty for a flag; "FILE" and "DIR" complete as paths
    std::string_view help;
    std::string_view fallback = {};    // default value, shown in help; empty: none
    std::string_view choices = {};     // "safe|numerics": the only accepted values
    std::string_view short_name = {};  // "-o"
    bool required = false;
    bool repeats = false;
    // "--resume" or "--resume PATH"; a verb with operands takes the value as "--x=V" only
    bool value_optional = false;
};

// The program that has the verb. The engine links LibTorch, and loading that takes longer than most
// verbs run. So the engine is a separate program, which `saturate` executes when needed.
enum class Program { saturate, engine };

struct Verb {
    std::string_view name;
    std::string_view summary;
    std::string_view usage;  // the text after "saturate "
    std::vector<Option> options;
    std::string_view operands = {};  // "TRACE|RUN|CONFIG..."; empty: no operands
    bool takes_command = false;      // "-- COMMAND..."
    bool has_its_status = false;     // exits as the command does
    Program program = Program::saturate;
    std::string_view details = {};  // further lines of --help
};

[[nodiscard]] std::span<const Verb> verbs();
[[nodiscard]] const Verb* find_verb(std::string_view name);

// Returns the help text with the default: "show at most N findings (default: 5)".
[[nodiscard]] std::string option_help(const Option& option);
// Returns commands with descriptions, {"demo restoration", "one of the five jobs"}: examples.cpp.
[[nodiscard]] std::vector<std::pair<std::string_view, std::string_view>> verb_examples(
    std::string_view verb);
// Returns null if the verb does not have the option; `name` may be the short name.
[[nodiscard]] const Option* find_option(const Verb& verb, std::string_view name);

// help.cpp, completion.cpp, manual.cpp
[[nodiscard]] std::string help_text();                                // saturate --help
[[nodiscard]] std::string help_text(const Verb& verb);                // saturate VERB --help
[[nodiscard]] std::string completion_script(std::string_view shell);  // "bash" or "zsh"
[[nodiscard]] std::string manual_page(std::string_view version);      // man saturate
[[nodiscard]] std::string manual_page(const Verb& verb, std::string_view version);

}  // namespace saturate
