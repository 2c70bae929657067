// SPDX-License-Identifier: Apache-2.0
#include "config/yaml_message.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"

namespace saturate {

namespace {

struct Meaning {
    std::string_view message;  // start of the library's message
    const char* found;
    const char* expected;
    const char* fix;
};

constexpr auto kMeanings = std::to_array<Meaning>({
    {"end of map flow", "a { that is not closed", "key: value pairs with commas, then }",
     "close the brace, or write a comma between the pairs"},
    {"end of sequence flow", "a [ that is not closed", "values with commas, then ]",
     "close the bracket, or write a comma between the values"},
    {"end of map", "this line fits neither the map above it nor a new one",
     "a key in the column of its siblings", "move the line to the column of the keys around it"},
    {"end of sequence", "this line fits neither the list above it nor a new one",
     "a dash in the column of the other dashes", "move the line to the column of its siblings"},
    {"illegal map value", "a colon where no value can begin",
     "one \"key: value\" in a line, in the column of its siblings",
     "fix the indentation, or quote a text that contains \": \""},
    {"illegal map key", "a ? where no key can begin", "a key at the start of a line",
     "quote a text that begins with \"? \""},
    {"illegal block entry", "a dash where no list item can begin", "a list on lines of its own",
     "begin the list on the next line, or write it as [a, b]"},
    {"illegal flow end", "a closing bracket that nothing opened",
     "each ] and } to close what [ or { opened", "remove it, or add the bracket that is missing"},
    {"illegal EOF in scalar", "a quote that is never closed", "the same quote at the end",
     "close the quote"},
    {"illegal document indicator", "--- or ... inside a quoted text", "the closing quote before it",
     "close the quote"},
    {"illegal tab", "a tab in the indentation", "spaces", "replace the tab with spaces"},
    {"unknown escape character", "an escape in double quotes that YAML does not have",
     "\\n, \\t, \\\\, \\\" and the like",
     "write the text in single quotes, or each backslash twice"},
    {"bad character found while scanning hex", "a \\x, \\u or \\U escape that is not hexadecimal",
     "2, 4 or 8 digits 0-9 a-f", "write the text in single quotes, or each backslash twice"},
    {"invalid unicode", "an escape for a character that does not exist", "a Unicode character",
     "write the character itself"},
    {"the referenced anchor is not defined", "an alias whose anchor is not defined above it",
     "an anchor (&name) earlier in the file",
     "define the anchor first, or quote a text that begins with *"},
    {"alias not found", "a * without a name", "*name of an anchor",
     "quote a text that begins with *"},
    {"anchor not found", "a & without a name", "&name", "quote a text that begins with &"},
    {"illegal character found while scanning alias", "an alias with an illegal character in it",
     "letters, digits, - and _", "quote a text that begins with *"},
    {"illegal character found while scanning anchor", "an anchor with an illegal character in it",
     "letters, digits, - and _", "quote a text that begins with &"},
    {"cannot assign multiple anchors", "two anchors on one value", "one anchor", "remove one"},
    {"cannot assign multiple tags", "two tags on one value", "one tag", "remove one"},
    {"cannot set zero indentation", "a block of text with indentation 0", "|1 to |9, or |",
     "write | without a digit"},
    {"unexpected character in block scalar", "text after | or >", "the text on the lines below",
     "move the text to the next line"},
    {"illegal character found while scanning tag", "a tag with an illegal character in it",
     "!name or !!name", "quote a text that begins with !"},
    {"tag handle with no suffix", "a tag without a name", "!name or !!name",
     "quote a text that begins with !"},
    {"end of verbatim tag", "a tag !<...> that is not closed", "a closing >", "close it"},
    {"YAML", "a %YAML line without a version", "%YAML 1.1 or %YAML 1.2", "remove the line"},
    {"bad YAML version", "a %YAML line with an unknown version", "%YAML 1.1 or %YAML 1.2",
     "remove the line"},
    {"repeated", "a directive that appears twice", "each %YAML and %TAG once", "remove the line"},
    {"TAG", "a %TAG line that is not complete", "%TAG !handle! prefix", "remove the line"},
    {"unknown token", "a character that no value can begin with", "a value, a key or a comment",
     "write the value in quotes"},
});

}  // namespace

Problem explain_yaml_error(Place where, std::string_view message, std::string_view line) {
    Problem problem{.where = std::move(where)};
    std::string here = trim(line).empty() ? "" : fmt::format(": {}", in_quotes(trim(line)));
    for (const Meaning& meaning : kMeanings) {
        if (!message.starts_with(meaning.message)) continue;
        problem.found = meaning.found + here;
        problem.expected = meaning.expected;
        problem.fix = meaning.fix;
        return problem;
    }
    problem.found = fmt::format("is not YAML ({}){}", message, here);
    problem.expected = "\"key: value\" lines, nested by spaces";
    problem.fix = "check this line and the one before it";
    return problem;
}

}  // namespace saturate
