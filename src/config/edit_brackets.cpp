// SPDX-License-Identifier: Apache-2.0
// Keys added to and removed from maps in brackets: {a: 1} of YAML, JSON's objects, TOML's inline
// tables.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/edit_plan.h"
#include "config/yaml_scan.h"

namespace saturate {

namespace {

// What stands between a key and its value, as the neighbour writes it: ": " or " : " or " = ".
std::string separator(const Plan& plan, const Member* like) {
    Format format = plan.document.format();
    std::string_view usual = format == Format::toml ? " = " : ": ";
    if (like == nullptr || format == Format::yaml || like->value.begin <= like->end)
        return std::string(usual);
    std::string_view raw =
        std::string_view(plan.document.text()).substr(like->end, like->value.begin - like->end);
    bool is_simple = trim(raw) == trim(usual) && raw.find_first_of("\r\n") == raw.npos;
    return std::string(is_simple ? raw : usual);
}

void check_brackets(const Plan& plan, const Target& target) {
    bool good = target.map->placed && plan.document.text()[target.map->begin] == '{';
    if (good) return;
    refuse(target, "this map has no braces of its own", "{key: value}", "write it with braces");
}

}  // namespace

void insert_in_brackets(Plan& plan, const Target& target, const NewValue& value) {
    check_brackets(plan, target);
    const std::string& text = plan.document.text();
    const Member* behind = neighbour(target);
    Format format = plan.document.format();
    std::string pair =
        render_key(target.edit->path.back(), format, true) + separator(plan, behind) + value.raw;
    if (behind == nullptr) {
        plan.patches.add(target.map->begin + 1, target.map->begin + 1, pair);
        plan.comments.add(target, target.map->begin + 1, target.edit->reason);
        return;
    }
    std::size_t end = std::max(behind->end, behind->value.end);
    std::size_t line_begin = plan.lines.begin(behind->begin);
    std::size_t comma = skip_blanks(text, end);
    bool has_comma = comma < text.size() && text[comma] == ',';
    std::size_t rest = skip_blanks(text, has_comma ? comma + 1 : end);
    bool ends_line = rest >= plan.lines.end(end) || (format == Format::yaml && text[rest] == '#');
    bool own_line = skip_blanks(text, line_begin) == behind->begin && ends_line;
    if (!own_line) {
        plan.patches.add(end, end, ", " + pair);
        plan.comments.add(target, end, target.edit->reason);
        return;
    }
    // One key per line: a line of its own, as deep as the neighbour, with the comma where it is
    // due.
    std::string line = text.substr(line_begin, behind->begin - line_begin) + pair;
    std::string reason = format == Format::json ? "" : one_line(target.edit->reason);
    if (has_comma) {
        line += ',';
    } else {
        plan.patches.add(end, end, ",");
    }
    if (!reason.empty()) line += "  # " + reason;
    add_line_behind(plan, target, end, line);
}

void remove_from_brackets(Plan& plan, const Target& target) {
    check_brackets(plan, target);
    const std::vector<Member>& members = target.map->members;
    const Member& member = *target.member;
    std::size_t begin = member.begin;
    std::size_t end = std::max(member.end, member.value.end);
    if (&member != &members.back()) {
        end = (&member + 1)->begin;
    } else if (members.size() > 1) {
        const Member& last = *(&member - 1);
        begin = std::max(last.end, last.value.end);
    }
    std::string_view gone = std::string_view(plan.document.text()).substr(begin, end - begin);
    if (plan.document.format() == Format::yaml && gone.find('#') != std::string_view::npos) {
        refuse(
            target,
            fmt::format("{} has a comment beside it in the brackets", path_text(target.edit->path)),
            "a pair without a comment", "remove it by hand");
    }
    plan.patches.add(begin, end, "");
}

}  // namespace saturate
