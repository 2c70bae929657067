// SPDX-License-Identifier: Apache-2.0
// Changes values in place, and adds and removes keys in YAML's indented maps.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/edit_plan.h"
#include "config/yaml_scan.h"

namespace saturate {

namespace {

std::size_t end_of(const Member& member) { return std::max(member.end, member.value.end); }

// The end of a member. A key without a value still has its colon.
std::size_t end_of(const EditPlan& plan, const Member& member) {
    std::size_t end = end_of(member);
    std::size_t colon = skip_blanks(plan.document.text(), end);
    bool is_bare = member.value.begin == member.value.end && end == member.end;
    return is_bare && colon < plan.document.text().size() && plan.document.text()[colon] == ':'
               ? colon + 1
               : end;
}

// The indentation of the map's keys: the text before the key with its dashes as spaces. An anchor
// or tag of the key is not part of it.
std::string indentation(const EditPlan& plan, const Member& member) {
    std::size_t begin = plan.lines.begin(member.begin);
    std::string_view before =
        std::string_view(plan.document.text()).substr(begin, member.begin - begin);
    std::size_t width = 0;
    while (width < before.size() &&
           (before[width] == ' ' ||
            (before[width] == '-' && before.substr(width + 1).starts_with(' '))))
        ++width;
    return std::string(width, ' ');
}

bool is_first_in_line(const EditPlan& plan, const Member& member) {
    std::size_t begin = plan.lines.begin(member.begin);
    return skip_blanks(plan.document.text(), begin) == member.begin;
}

}  // namespace

const Member* neighbour(const EditPlan& plan, const EditTarget& target) {
    const std::vector<Member>& members = target.map->members;
    auto sibling = std::ranges::find(members, target.edit->behind, &Member::key);
    auto end = sibling != members.end() ? sibling + 1 : members.end();
    while (end != members.begin()) {
        if (!plan.removed.count(&*--end)) return &*end;
    }
    return nullptr;
}

void add_line_behind(EditPlan& plan, const EditTarget& target, std::size_t at,
                     const std::string& line) {
    std::size_t next = plan.lines.next(at);
    std::string ending(plan.lines.ending(at));
    const std::string& text = plan.document.text();
    bool unfinished = next == text.size() && !text.empty() && text.back() != '\n';
    plan.patches.add(next, next, unfinished ? ending + line : line + ending, Patches::Rank::line,
                     target.edit->path.size());
}

void change_value(EditPlan& plan, const EditTarget& target, const NewValue& value) {
    const Node& old = target.member->value;
    const std::string& text = plan.document.text();
    std::string name = path_text(target.edit->path);
    bool is_collection = old.kind == Node::Kind::map || old.kind == Node::Kind::sequence;
    bool one_line = plan.lines.index(old.begin) == plan.lines.index(old.end);
    bool in_brackets = old.flow && (text[old.begin] == '[' || text[old.begin] == '{');
    if (is_collection && !(in_brackets && one_line)) {
        refuse(target,
               fmt::format("{} is a {} over several lines", name,
                           old.kind == Node::Kind::map ? "map" : "list"),
               "a single value", "change it by hand");
    }
    bool is_block = old.kind == Node::Kind::scalar && old.quoted && !old.flow &&
                    (text[old.begin] == '|' || text[old.begin] == '>');
    if (is_block && plan.document.format() == Format::yaml) {
        refuse(target, fmt::format("{} is a block of text ({})", name, text[old.begin]),
               "a single value", "change it by hand");
    }
    // An empty value comes right after its colon or anchor: "key:" becomes "key: 8".
    bool is_empty = old.begin == old.end;
    plan.patches.add(old.begin, old.end, is_empty ? " " + value.raw : value.raw);
    plan.comments.add(target, old.end, target.edit->reason);
}

void insert_in_block(EditPlan& plan, const EditTarget& target, const NewValue& value) {
    const Member* behind = neighbour(plan, target);
    if (behind == nullptr || !behind->placed) {
        refuse(target, "this map has no key to add another one after", "a map with a key", "");
    }
    std::string reason = one_line(target.edit->reason);
    std::string line = fmt::format("{}{}: {}{}", indentation(plan, *behind),
                                   render_key(target.edit->path.back(), Format::yaml, false),
                                   value.raw, reason.empty() ? "" : "  # " + reason);
    add_line_behind(plan, target, end_of(plan, *behind), line);
}

void remove_from_block(EditPlan& plan, const EditTarget& target) {
    const std::vector<Member>& members = target.map->members;
    const Member& member = *target.member;
    std::string name = path_text(target.edit->path);
    if (members.size() == 1) {
        refuse(target, fmt::format("{} is the only key of its map", name), "another key beside it",
               "remove the whole map by hand");
    }
    std::size_t line_begin = plan.lines.begin(member.begin);
    std::size_t next_line = plan.lines.next(end_of(plan, member));
    if (!is_first_in_line(plan, member)) {
        refuse(target, fmt::format("{} does not begin its line", name),
               "a key on a line of its own", "remove it by hand");
    }
    plan.patches.add(line_begin, next_line, "", Patches::Rank::line);
}

}  // namespace saturate
