// SPDX-License-Identifier: Apache-2.0
// Adds and removes keys in maps in brackets: {a: 1} in YAML, objects in JSON, inline tables in
// TOML.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/edit_plan.h"
#include "config/yaml_scan.h"

namespace saturate {

namespace {

// The separator between key and value, as the neighbour has it: ": " or " : " or " = ".
std::string separator(const EditPlan& plan, const Member* like) {
    Format format = plan.document.format();
    std::string_view usual = format == Format::toml ? " = " : ": ";
    if (like == nullptr || format == Format::yaml || like->value.begin <= like->end)
        return std::string(usual);
    std::string_view raw =
        std::string_view(plan.document.text()).substr(like->end, like->value.begin - like->end);
    bool is_simple = trim(raw) == trim(usual) && raw.find_first_of("\r\n") == raw.npos;
    return std::string(is_simple ? raw : usual);
}

void check_brackets(const EditPlan& plan, const EditTarget& target) {
    bool good = target.map->placed && plan.document.text()[target.map->begin] == '{';
    if (good) return;
    refuse(target, "this map has no braces of its own", "{key: value}", "write it with braces");
}

// True if the member has its lines to itself, so that a new one should too. `behind` is the place
// of its comma, or its end without one.
bool has_own_line(const EditPlan& plan, const Member& member, bool has_comma, std::size_t behind) {
    const std::string& text = plan.document.text();
    std::size_t rest = skip_blanks(text, has_comma ? behind + 1 : behind);
    bool is_comment =
        plan.document.format() == Format::yaml && rest < text.size() && text[rest] == '#';
    bool ends_line = rest >= plan.lines.end(behind) || is_comment;
    return ends_line && skip_blanks(text, plan.lines.begin(member.begin)) == member.begin;
}

// Writes all pairs into the line of their neighbour: {a: 1, new: 2}, or into {}.
void write_inline(EditPlan& plan, const NewPairs& added, std::size_t at) {
    std::string out;
    for (const auto& [target, pair] : added.pairs) {
        if (!out.empty() || added.behind != nullptr) out += ", ";
        out += pair;
        plan.comments.add(target, at, target.edit->reason);
    }
    // Depth 1: goes before the removal of the next member, which begins at the same byte.
    plan.patches.add(at, at, std::move(out), Patches::Rank::value, 1);
}

// Writes each pair on its own line, indented as its neighbour, with commas.
void write_lines(EditPlan& plan, const NewPairs& added, std::size_t at, bool has_comma) {
    std::size_t line_begin = plan.lines.begin(added.behind->begin);
    std::string margin = plan.document.text().substr(line_begin, added.behind->begin - line_begin);
    if (!has_comma) plan.patches.add(at, at, ",", Patches::Rank::value, 1);
    std::string out;
    for (std::size_t i = 0; i < added.pairs.size(); ++i) {
        const auto& [target, pair] = added.pairs[i];
        if (!out.empty()) out += plan.lines.ending(at);
        out += margin + pair;
        if (has_comma || i + 1 < added.pairs.size()) out += ',';
        bool has_comments = plan.document.format() != Format::json;
        std::string reason = has_comments ? one_line(target.edit->reason) : "";
        if (!reason.empty()) out += "  # " + reason;
    }
    add_line_behind(plan, added.pairs[0].first, at, out);
}

}  // namespace

void insert_in_brackets(EditPlan& plan, const EditTarget& target, const NewValue& value) {
    check_brackets(plan, target);
    const Member* behind = neighbour(plan, target);
    std::string pair = render_key(target.edit->path.back(), plan.document.format(), true) +
                       separator(plan, behind) + value.raw;
    auto same_gap = [&](const NewPairs& other) {
        return other.map == target.map && other.behind == behind;
    };
    auto known = std::ranges::find_if(plan.new_pairs, same_gap);
    if (known == plan.new_pairs.end())
        known = plan.new_pairs.insert(known, NewPairs{target.map, behind, {}});
    known->pairs.emplace_back(target, std::move(pair));
}

void write_new_pairs(EditPlan& plan) {
    const std::string& text = plan.document.text();
    for (const NewPairs& added : plan.new_pairs) {
        if (added.behind == nullptr) {
            write_inline(plan, added, added.map->begin + 1);
            continue;
        }
        std::size_t end = std::max(added.behind->end, added.behind->value.end);
        std::size_t comma = skip_blanks(text, end);
        bool has_comma = comma < text.size() && text[comma] == ',';
        if (has_own_line(plan, *added.behind, has_comma, has_comma ? comma : end)) {
            write_lines(plan, added, end, has_comma);
        } else {
            write_inline(plan, added, end);
        }
    }
}

void remove_from_brackets(EditPlan& plan, const EditTarget& target) {
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
        refuse(target,
               fmt::format("{} has a comment next to it inside the brackets",
                           path_text(target.edit->path)),
               "a pair without a comment", "remove it by hand");
    }
    plan.patches.add(begin, end, "");
}

}  // namespace saturate
