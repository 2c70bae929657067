// SPDX-License-Identifier: Apache-2.0
// Completion scripts made from the table of verbs.
#include <fmt/format.h>

#include <algorithm>

#include "verbs.h"

namespace saturate {

namespace {

bool is_path(std::string_view value) { return value == "FILE" || value == "DIR"; }

std::string spaced(std::string_view choices) {
    std::string out(choices);
    std::replace(out.begin(), out.end(), '|', ' ');
    return out;
}

// True if the operands are choices ("bash|zsh"), which are lower case, and not placeholders
// ("TRACE|RUN...").
bool has_operand_choices(const Verb& verb) {
    return !verb.operands.empty() && std::islower(static_cast<unsigned char>(verb.operands[0]));
}

std::string bash_script() {
    std::string names, options, values;
    for (const Verb& verb : verbs()) {
        names += fmt::format("{} ", verb.name);
        std::string words = "--help";
        for (const Option& option : verb.options) {
            words += fmt::format(" {}", option.name);
            if (!option.choices.empty()) {
                values += fmt::format("        {}\\ {}) words=\"{}\" ;;\n", verb.name, option.name,
                                      spaced(option.choices));
            } else if (!option.value.empty() && !is_path(option.value)) {
                values += fmt::format("        {}\\ {}) return ;;\n", verb.name, option.name);
            } else if (is_path(option.value)) {
                values += fmt::format(
                    "        {0}\\ {1}) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n",
                    verb.name, option.name);
            }
        }
        if (has_operand_choices(verb)) words += fmt::format(" {}", spaced(verb.operands));
        options += fmt::format("        {}) words=\"{}\" ;;\n", verb.name, words);
    }
    return fmt::format(R"(# bash completion of saturate, made by: saturate completion bash
_saturate() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{}--help --version" -- "$word"))
        return
    fi
    case "${{COMP_WORDS[1]}}" in
{}    esac
    case "${{COMP_WORDS[1]}} $before" in
{}    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [ "${{#COMPREPLY[@]}}" -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))
}}
complete -o filenames -F _saturate saturate ./saturate
)",
                       names, options, values);
}

// Escapes text for single quotes and escapes the characters that are special to _arguments.
std::string zsh_quoted(std::string_view text) {
    std::string out;
    for (char c : text) {
        if (c == '\'') {
            out += "'\\''";
        } else if (c == ':' || c == '[' || c == ']') {
            out += '\\';
            out += c;
        } else {
            out += c;
        }
    }
    return out;
}

std::string zsh_script() {
    std::string names, cases;
    for (const Verb& verb : verbs()) {
        names += fmt::format("        '{}:{}'\n", verb.name, zsh_quoted(verb.summary));
        cases += fmt::format("        {}) _arguments '--help[explain this verb]'", verb.name);
        for (const Option& option : verb.options) {
            cases += fmt::format(" '{}{}[{}]", option.repeats ? "*" : "", option.name,
                                 zsh_quoted(option_help(option)));
            if (!option.choices.empty()) {
                cases += fmt::format(":{}:({})", option.value, spaced(option.choices));
            } else if (is_path(option.value)) {
                cases += fmt::format(":{}:_files", option.value);
            } else if (!option.value.empty()) {
                cases += fmt::format(":{}:", option.value);
            }
            cases += '\'';
        }
        if (has_operand_choices(verb)) {
            cases += fmt::format(" ':{0}:({0})'", spaced(verb.operands));
        } else if (!verb.operands.empty()) {
            cases += " '*:file:_files'";
        }
        cases += " ;;\n";
    }
    return fmt::format(R"(#compdef saturate
# zsh completion of saturate, made by: saturate completion zsh
_saturate() {{
    local -a verbs=(
{}    )
    if (( CURRENT == 2 )); then
        _describe verb verbs
        return
    fi
    local verb="${{words[2]}}"
    shift words
    (( CURRENT-- ))
    case "$verb" in
{}    esac
}}
# From a folder of fpath this file is the function's first call; sourced, it only tells zsh of it.
if [ "${{funcstack[1]}}" = _saturate ]; then
    _saturate "$@"
else
    compdef _saturate saturate
fi
)",
                       names, cases);
}

}  // namespace

std::string completion_script(std::string_view shell) {
    return shell == "zsh" ? zsh_script() : bash_script();
}

}  // namespace saturate
