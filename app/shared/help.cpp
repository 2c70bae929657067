// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "verbs.h"

namespace saturate {

namespace {

constexpr std::string_view kExitCodes =
    "Exit codes: 0 done, 1 finished but the answer is no, 2 a mistake in the input,\n"
    "    3 a problem with the machine, 4 the job failed, 70 a bug in saturate,\n"
    "    130 interrupted, results written\n";
constexpr std::string_view kExitCodesOfACommand =
    "Exit codes: the command's own; 124 ended by --seconds or --steps, 125 run itself failed,\n"
    "    126 the command cannot be started, 127 it was not found\n";

std::string left_side(const Option& option) {
    std::string side = option.short_name.empty() ? "    " : fmt::format("{}, ", option.short_name);
    side += option.name;
    if (option.value_optional) return fmt::format("{}[={}]", side, option.value);
    if (!option.value.empty()) side += fmt::format(" {}", option.value);
    return side;
}

}  // namespace

std::string option_help(const Option& option) {
    if (option.fallback.empty()) return std::string(option.help);
    return fmt::format("{} (default: {})", option.help, option.fallback);
}

std::string help_text() {
    std::string out =
        "Is your GPU idle while you train? saturate finds out why, writes the fix, and proves "
        "it.\n\n"
        "Usage: saturate VERB [options]\n"
        "Start with: saturate fix -- python train.py\n\n";
    for (const Verb& verb : verbs()) out += fmt::format("  {:<11} {}\n", verb.name, verb.summary);
    out += "\nsaturate VERB --help explains a verb; saturate --version prints the version.\n";
    return out.append(kExitCodes);
}

std::string help_text(const Verb& verb) {
    std::string out =
        fmt::format("saturate {}: {}\n\nUsage: saturate {}\n", verb.name, verb.summary, verb.usage);
    std::size_t width = 10;
    for (const Option& option : verb.options) width = std::max(width, left_side(option).size());
    if (!verb.options.empty()) out += "\n";
    for (const Option& option : verb.options) {
        out += fmt::format("  {:<{}}  {}", left_side(option), width, option_help(option));
        if (!option.choices.empty()) out += fmt::format(" [{}]", option.choices);
        if (option.required) out += " (required)";
        out += '\n';
    }
    if (!verb.details.empty()) out += fmt::format("\n{}", verb.details);
    out += "\nExamples:\n";
    for (const auto& [command, what] : verb_examples(verb.name))
        out += fmt::format("  saturate {}\n      {}\n", command, what);
    return out.append("\n").append(verb.has_its_status ? kExitCodesOfACommand : kExitCodes);
}

}  // namespace saturate
