// SPDX-License-Identifier: Apache-2.0
#include "config/set_values.h"

#include <fmt/format.h>

#include "base/text.h"
#include "config/edit.h"
#include "config/settings.h"

namespace saturate {

namespace {

struct Wish {
    const SettingInfo* info = nullptr;
    std::string value;
};

Wish read_wish(const std::string& text) {
    std::size_t equals = text.find('=');
    std::string key(trim(std::string_view(text).substr(0, equals)));
    std::string value;
    if (equals != std::string::npos) value = trim(std::string_view(text).substr(equals + 1));
    if (value.empty()) {
        throw UserError({.found = fmt::format("--set is {}", in_quotes(text)),
                         .expected = "key=value",
                         .fix = "--set batch_size=64"});
    }
    const SettingInfo* info = find_setting(key);
    if (!info) {
        std::vector<std::string> names;
        for (const SettingInfo& each : schema()) names.emplace_back(each.name);
        Problem problem{.found = fmt::format("--set names no setting {}", in_quotes(key)),
                        .expected = "a name of docs/settings.md"};
        if (auto meant = closest(key, names))
            problem.fix = fmt::format("--set {}={}", *meant, value);
        throw UserError(problem);
    }
    return {info, value};
}

// Reports a wrong value as a mistake of the option, not of the file that gets it.
void check_value(const Wish& wish, const std::string& text) {
    try {
        (void)Settings::read(
            Document::parse(fmt::format("{}: {}\n", wish.info->name, wish.value), ""),
            find_dialect("saturate"));
    } catch (const UserError& error) {
        std::vector<Problem> problems = error.problems();
        for (Problem& problem : problems) {
            problem.where = {};
            problem.found = fmt::format("--set {}: {}", text, problem.found);
            // The problem shows it as a line of a file: "batch_size: 32".
            if (std::size_t colon = problem.fix.find(": "); colon != std::string::npos)
                problem.fix = fmt::format("--set {}={}", problem.fix.substr(0, colon),
                                          problem.fix.substr(colon + 2));
        }
        throw UserError(problems);
    }
}

}  // namespace

Document with_values(const Document& document, std::span<const std::string> values) {
    Document out = document;
    for (const std::string& text : values) {
        Wish wish = read_wish(text);
        check_value(wish, text);
        // The setting's place in the file, which may be invalid before all edits are made.
        const Dialect& dialect = recognise_dialect(out);
        KeyPath path{std::string(wish.info->name)};
        bool found = false;
        KeyIndex index(out, true);
        DialectKeys keys(index, dialect);
        for (const Alias& alias : dialect.aliases) {
            if (alias.setting != wish.info->id) continue;
            for (const Found& place : keys.find(alias)) {
                if (out.resolve(*place.node)->kind == Node::Kind::map) continue;  // a section
                if (!found) path = place.path;
                found = true;
            }
        }
        Edit edit{.path = path, .value = wish.value};
        out = Document::parse(apply_edits(out, {&edit, 1}), out.file());
    }
    return out;
}

}  // namespace saturate
