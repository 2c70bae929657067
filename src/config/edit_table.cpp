// SPDX-License-Identifier: Apache-2.0
// Adds and removes keys in TOML's tables: "key = value" lines under a [header].
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/edit_plan.h"
#include "config/yaml_scan.h"

namespace saturate {

namespace {

// True for a line "key = value". False for a [header] or a part of a dotted key.
bool is_line(const EditPlan& plan, const Member& member) {
    const std::string& text = plan.document.text();
    std::size_t next = skip_blanks(text, member.end);
    return next < text.size() && text[next] == '=';
}

// The last line of the table that another line can follow, up to the named key.
const Member* line_to_follow(const EditPlan& plan, const EditTarget& target) {
    const Member* last = nullptr;
    for (const Member& member : target.map->members) {
        bool stays = is_line(plan, member) && !plan.removed.count(&member);
        if (stays) last = &member;
        if (member.key == target.edit->behind) break;
    }
    return last;
}

// True if the table at `path` has its own [header], and not only a table inside it: toml++ places a
// table `a` without a header at [a.b].
bool has_header(const EditPlan& plan, const Node& table, const KeyPath& path) {
    std::string_view header =
        std::string_view(plan.document.text()).substr(table.begin, table.end - table.begin);
    if (!header.starts_with('[')) return false;
    std::size_t parts = 1;
    char quote = '\0';
    for (std::size_t i = 0; i < header.size(); ++i) {
        char c = header[i];
        if (quote != '\0') {
            if (c == '\\' && quote == '"') ++i;
            if (c == quote) quote = '\0';
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else {
            parts += c == '.';
        }
    }
    return parts == path.size();
}

}  // namespace

void insert_in_table(EditPlan& plan, const EditTarget& target, const NewValue& value) {
    const std::string& text = plan.document.text();
    std::string reason = one_line(target.edit->reason);
    std::string pair =
        fmt::format("{} = {}{}", render_key(target.edit->path.back(), Format::toml, false),
                    value.raw, reason.empty() ? "" : "  # " + reason);
    if (const Member* behind = line_to_follow(plan, target)) {
        // The text before the key: indentation and, for dotted keys, the names before the last dot.
        std::size_t begin = plan.lines.begin(behind->begin);
        add_line_behind(plan, target, behind->value.end,
                        text.substr(begin, behind->begin - begin) + pair);
        return;
    }
    bool is_root = target.map == &plan.document.root();
    if (is_root) {
        std::size_t top = plan.lines.start(0);
        plan.patches.add(top, top, pair + std::string(plan.lines.ending(0)), Patches::Rank::line);
        return;
    }
    KeyPath table(target.edit->path.begin(), target.edit->path.end() - 1);
    if (!has_header(plan, *target.map, table)) {
        refuse(target, fmt::format("the table {} has no line of its own", path_text(table)),
               "a [header] with keys below it", fmt::format("write [{}] first", path_text(table)));
    }
    add_line_behind(plan, target, target.map->begin, pair);
}

void remove_from_table(EditPlan& plan, const EditTarget& target) {
    const Member& member = *target.member;
    if (!is_line(plan, member)) {
        refuse(target, fmt::format("{} is a table", path_text(target.edit->path)),
               "a key = value line", "remove the table by hand");
    }
    std::size_t next = plan.lines.next(member.value.end);
    plan.patches.add(plan.lines.begin(member.begin), next, "", Patches::Rank::line);
}

}  // namespace saturate
