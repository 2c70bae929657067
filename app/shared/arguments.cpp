// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace saturate {

namespace {

std::vector<std::string> option_names(const Verb& verb) {
    std::vector<std::string> names{"--help"};
    for (const Option& option : verb.options) names.emplace_back(option.name);
    return names;
}

Problem unknown_option(const Verb& verb, std::string_view name) {
    std::vector<std::string> names = option_names(verb);
    Problem problem{.found = fmt::format("{} has no option {}", verb.name, in_quotes(name)),
                    .expected = join(names, ", ")};
    if (auto meant = closest(name, names)) problem.fix = fmt::format("did you mean {}?", *meant);
    return problem;
}

std::optional<Problem> check_choice(const Option& option, const std::string& value) {
    if (option.choices.empty()) return std::nullopt;
    std::vector<std::string> choices;
    for (std::string_view choice : split(option.choices, '|')) choices.emplace_back(choice);
    if (std::ranges::find(choices, value) != choices.end()) return std::nullopt;
    Problem problem{.found = fmt::format("{} is {}", option.name, in_quotes(value)),
                    .expected = join(choices, ", ")};
    if (auto meant = closest(value, choices))
        problem.fix = fmt::format("{} {}", option.name, *meant);
    return problem;
}

// Starts the command as a shell would: A=b in front of it is a variable, not a program.
void set_variables(std::vector<std::string>& command) {
    constexpr std::string_view kLetters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    if (command.empty()) return;
    std::size_t end = command[0].find_first_not_of(kLetters);
    bool is_variable = end != std::string::npos && end > 0 && command[0][end] == '=' &&
                       !(command[0][0] >= '0' && command[0][0] <= '9');
    if (is_variable) command.insert(command.begin(), "env");
}

bool is_configuration(std::string_view word) {
    return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json") ||
           word.ends_with(".toml");
}

// Returns the error for a word that no option takes: a file without its option, or a command
// without "--".
Problem stray_word(const Verb& verb, const std::vector<std::string>& words, std::size_t at) {
    const std::string& word = words[at];
    Problem problem{.found = fmt::format("{}: unexpected argument {}", verb.name, in_quotes(word)),
                    .expected = fmt::format("saturate {}", verb.usage)};
    if (find_option(verb, "--config") && is_configuration(word)) {
        problem.fix = fmt::format("saturate {} --config {}", verb.name, word);
    } else if (verb.takes_command && std::ranges::find(words, "--") == words.end()) {
        std::vector<std::string> given = words;
        auto command = given.begin() + static_cast<std::ptrdiff_t>(at);
        if (word.ends_with(".py")) command = given.insert(command, "python");
        given.insert(command, "--");
        problem.fix =
            fmt::format("put -- before the command: saturate {} {}", verb.name, join(given, " "));
    }
    return problem;
}

}  // namespace

Arguments Arguments::parse(const Verb& verb, const std::vector<std::string>& words) {
    Arguments out;
    out.verb_ = &verb;
    out.words = words;
    std::vector<Problem> problems;
    std::optional<Problem> stray;
    bool may_lack_its_value = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (word == "--") {
            if (verb.takes_command) {
                out.command.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
                set_variables(out.command);
            } else {
                out.operands.insert(out.operands.end(),
                                    words.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                    words.end());
            }
            break;
        }
        if (word.size() < 2 || word[0] != '-') {
            out.operands.push_back(word);
            if (verb.operands.empty()) {
                stray = stray_word(verb, words, i);
                if (!stray->fix.empty() && verb.takes_command) break;  // the rest is the command
            }
            continue;
        }
        std::size_t equals = word.starts_with("--") ? word.find('=') : std::string::npos;
        std::string name = word.substr(0, equals);
        if (name == "--help" || name == "-h") {
            out.wants_help = true;
            continue;
        }
        const Option* option = find_option(verb, name);
        if (!option) {
            problems.push_back(unknown_option(verb, name));
            auto meant = closest(name, option_names(verb));
            const Option* known = meant ? find_option(verb, *meant) : nullptr;
            may_lack_its_value = may_lack_its_value || !known || !known->value.empty();
            continue;
        }
        std::string value;
        if (option->value.empty()) {
            if (equals != std::string::npos) {
                problems.push_back({.found = fmt::format("{} takes no value", name), .fix = name});
            }
        } else if (equals != std::string::npos) {
            value = word.substr(equals + 1);
        } else if (option->value_optional) {
            // If the verb has no operands, the next word can only be the value.
            bool follows =
                verb.operands.empty() && i + 1 < words.size() && !words[i + 1].starts_with('-');
            if (follows) value = words[++i];
        } else if (i + 1 < words.size() && words[i + 1] != "--") {
            value = words[++i];
        } else {
            problems.push_back({.found = fmt::format("{} has no value", name),
                                .expected = fmt::format("{} {}", option->name, option->value)});
            continue;
        }
        if (auto problem = check_choice(*option, value)) problems.push_back(*problem);
        std::vector<std::string>& given = out.values_[std::string(option->name)];
        if (!given.empty() && !option->repeats && !option->value.empty()) {
            problems.push_back(
                {.found = fmt::format("{} is given twice", option->name), .expected = "once"});
        }
        given.push_back(value);
    }
    if (out.wants_help) return out;
    // A word after a mistyped option may be its value.
    if (stray && !may_lack_its_value) problems.push_back(*stray);
    for (const Option& option : verb.options) {
        // Report a mistake only once: for a file without --config, do not also say that --config is
        // missing.
        if (option.required && !stray && !out.has(option.name)) {
            problems.push_back({.found = fmt::format("{} is missing", option.name),
                                .expected = fmt::format("saturate {}", verb.usage)});
        }
    }
    if (!problems.empty()) throw UserError(problems);
    return out;
}

// Checks the name, because a typo in our code would look like an option that was not given.
const Option& Arguments::option(std::string_view name) const {
    const Option* found = find_option(*verb_, name);
    SATURATE_CHECK(found, fmt::format("{} has no option {}", verb_->name, name));
    return *found;
}

bool Arguments::has(std::string_view name) const {
    (void)option(name);
    return values_.find(name) != values_.end();
}

std::optional<std::string> Arguments::text(std::string_view name) const {
    const Option& known = option(name);
    auto found = values_.find(name);
    if (found != values_.end()) return found->second.back();
    if (known.fallback.empty()) return std::nullopt;
    return std::string(known.fallback);
}

std::vector<std::string> Arguments::all(std::string_view name) const {
    (void)option(name);
    auto found = values_.find(name);
    return found == values_.end() ? std::vector<std::string>{} : found->second;
}

std::optional<double> Arguments::number(std::string_view name, double least, double most) const {
    auto given = text(name);
    if (!given) return std::nullopt;
    auto value = parse_number(*given);
    if (!value || !std::isfinite(*value) || *value < least || *value > most) {
        throw UserError({.found = fmt::format("{} is {}", name, in_quotes(*given)),
                         .expected = fmt::format("a number from {} to {}", least, most)});
    }
    return value;
}

std::optional<double> Arguments::seconds(std::string_view name, double least, double most) const {
    auto given = text(name);
    if (!given) return std::nullopt;
    std::string_view number = *given;
    double unit = number.ends_with('h') ? 3600 : number.ends_with('m') ? 60 : 1;
    if (number.ends_with('h') || number.ends_with('m') || number.ends_with('s'))
        number.remove_suffix(1);
    auto value = parse_number(number);
    if (!value || !std::isfinite(*value) || *value * unit < least || *value * unit > most) {
        throw UserError({.found = fmt::format("{} is {}", name, in_quotes(*given)),
                         .expected = fmt::format("a time from {:g}s to {:g}h: 90s, 10m or 1h",
                                                 least, most / 3600)});
    }
    return *value * unit;
}

std::optional<long> Arguments::whole(std::string_view name, long least, long most) const {
    auto given = text(name);
    if (!given) return std::nullopt;
    auto value = parse_integer(*given);
    if (!value || *value < least || *value > most) {
        throw UserError({.found = fmt::format("{} is {}", name, in_quotes(*given)),
                         .expected = fmt::format("a whole number from {} to {}", least, most)});
    }
    return value;
}

}  // namespace saturate
