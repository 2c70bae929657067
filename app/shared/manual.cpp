// SPDX-License-Identifier: Apache-2.0
// Manual pages in the format of man(7), made from the table of verbs.
#include <fmt/format.h>

#include "base/text.h"
#include "verbs.h"

namespace saturate {

namespace {

constexpr std::string_view kExitStatus =
    ".SH EXIT STATUS\n"
    "0 done; 1 finished but the answer is no; 2 a mistake in the input; 3 a problem with the "
    "machine; 4 the job failed; 70 a bug in saturate; 130 interrupted, results written.\n";
constexpr std::string_view kExitStatusOfACommand =
    ".SH EXIT STATUS\n"
    "The command\\(aqs own; 124 ended by \\-\\-seconds or \\-\\-steps; 125 run itself failed; 126 "
    "the "
    "command cannot be started; 127 it was not found.\n";

// Escapes text for roff: hyphens, backslashes, and characters that would start a request at the
// beginning of a line.
std::string roff(std::string_view text) {
    std::string out;
    bool is_line_start = true;
    for (char c : text) {
        if (is_line_start && (c == '.' || c == '\'')) out += "\\&";
        if (c == '-') {
            out += "\\-";
        } else if (c == '\\') {
            out += "\\e";
        } else {
            out += c;
        }
        is_line_start = c == '\n';
    }
    return out;
}

std::string head(std::string_view name, std::string_view version, std::string_view summary) {
    return fmt::format(".TH {} 1 \"\" \"saturate {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n",
                       roff(name), version, roff(name), roff(summary));
}

std::string option_text(const Option& option) {
    std::string out = ".TP\n.B ";
    if (!option.short_name.empty()) out += fmt::format("{}, ", roff(option.short_name));
    out += roff(option.name);
    if (option.value_optional) {
        out += fmt::format("\\fR[=\\fI{}\\fR]", roff(option.value));
    } else if (!option.value.empty()) {
        out += fmt::format(" \\fI{}\\fR", roff(option.value));
    }
    out += fmt::format("\n{}", roff(option_help(option)));
    if (!option.choices.empty()) out += fmt::format(" [{}]", roff(option.choices));
    if (option.required) out += " (required)";
    return out + "\n";
}

}  // namespace

std::string manual_page(std::string_view version) {
    std::string out = head("saturate", version, "says why a GPU is idle, fixes it, and proves it") +
                      ".SH SYNOPSIS\n.B saturate\n.I VERB\n[options]\n.SH VERBS\n";
    std::string also;
    for (const Verb& verb : verbs()) {
        out += fmt::format(".TP\n.B {}\n{}\n", roff(verb.name), roff(verb.summary));
        also += fmt::format("{}.BR saturate\\-{} (1)", also.empty() ? "" : ",\n", verb.name);
    }
    return out.append(kExitStatus).append(fmt::format(".SH SEE ALSO\n{}\n", also));
}

std::string manual_page(const Verb& verb, std::string_view version) {
    std::string name = fmt::format("saturate-{}", verb.name);
    std::string out = head(name, version, verb.summary) +
                      fmt::format(".SH SYNOPSIS\n.B saturate\n{}\n", roff(verb.usage));
    if (!verb.options.empty()) out += ".SH OPTIONS\n";
    for (const Option& option : verb.options) out += option_text(option);
    if (!verb.details.empty()) {
        out += ".SH NOTES\n";
        for (std::string_view line : split(verb.details, '\n')) {
            if (!trim(line).empty()) out += roff(trim(line)) + "\n";
        }
    }
    return out.append(verb.has_its_status ? kExitStatusOfACommand : kExitStatus)
        .append(".SH SEE ALSO\n.BR saturate (1)\n");
}

}  // namespace saturate
