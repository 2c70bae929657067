// SPDX-License-Identifier: Apache-2.0
#include "config/edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "config/edit_plan.h"

namespace saturate {

namespace {

using Aliases = std::map<std::string, const Node*, std::less<>>;  // name -> first use

void collect_aliases(const Node& node, Aliases& aliases) {
    if (node.kind == Node::Kind::alias) aliases.emplace(node.text, &node);
    for (const Node& item : node.items) collect_aliases(item, aliases);
    for (const Member& member : node.members) collect_aliases(member.value, aliases);
}

// The value of `key` that `map` gets from its merge keys (<<), through lists of merges and nested
// merges. `seen` guards against a map that merges itself or is merged a thousand times.
const Node* find_merged(const Document& document, const Node& map, std::string_view key,
                        std::set<const Node*>& seen) {
    const Node* merge = map.find("<<");
    if (merge == nullptr || !seen.insert(&map).second) return nullptr;
    const Node* source = document.resolve(*merge);
    std::vector<const Node*> maps = {source};
    if (source->kind == Node::Kind::sequence) {
        maps.clear();
        for (const Node& item : source->items) maps.push_back(document.resolve(item));
    }
    for (const Node* base : maps) {
        if (const Node* value = base->find(key)) return value;
        if (const Node* value = find_merged(document, *base, key, seen)) return value;
    }
    return nullptr;
}

class EditLocator {
  public:
    explicit EditLocator(const Document& document) : document_(document) {
        collect_aliases(document.root(), aliases_);
    }

    EditTarget find(const Edit& edit) const {
        EditTarget target{.edit = &edit, .map = &document_.root()};
        if (edit.path.empty()) refuse(target, "an edit without a key", "the key to change", "");
        for (std::size_t i = 0; i < edit.path.size(); ++i) {
            const Node& map = *target.map;
            KeyPath here(edit.path.begin(), edit.path.begin() + static_cast<std::ptrdiff_t>(i));
            check_map(target, path_text(here));
            if (map.flow && target.brackets == nullptr) target.brackets = &map;
            auto member = std::ranges::find(map.members, edit.path[i], &Member::key);
            bool is_last = i + 1 == edit.path.size();
            if (member == map.members.end()) {
                check_merge(target, edit.path[i]);
                if (is_last) break;
                here.push_back(edit.path[i]);
                refuse(target, fmt::format("there is no {}", path_text(here)),
                       "an existing map to add the key to",
                       fmt::format("write {}: with a key below it first", path_text(here)));
            }
            if (is_last) {
                target.member = &*member;
            } else {
                target.map = &member->value;
            }
        }
        if (target.member != nullptr) check_value(target);
        if (edit.remove && target.member == nullptr) {
            refuse(target, fmt::format("there is no {} to remove", path_text(edit.path)),
                   "a key of the file", "");
        }
        return target;
    }

  private:
    void check_map(const EditTarget& target, const std::string& name) const {
        const Node& map = *target.map;
        check_shared(target, map, name);
        if (map.kind == Node::Kind::alias) {
            const Node* anchor = document_.resolve(map);
            refuse(target,
                   fmt::format("{} is the alias *{}, which refers to line {}", name, map.text,
                               anchor->place.line),
                   "a map with its own keys",
                   fmt::format("{} with <<: *{} and the key that is to differ", name, map.text));
        }
        if (map.kind != Node::Kind::map) {
            refuse(target, fmt::format("{} is not a map", name), "a map that contains the key", "");
        }
    }

    void check_merge(const EditTarget& target, const std::string& key) const {
        std::set<const Node*> seen;
        const Node* merged = find_merged(document_, *target.map, key, seen);
        if (merged == nullptr) return;
        refuse(target,
               fmt::format("{} comes from line {} through the merge key <<",
                           path_text(target.edit->path), merged->place.line),
               "a key written in its own map",
               fmt::format("write {}: {} into that map", key, target.edit->value));
    }

    void check_shared(const EditTarget& target, const Node& node, const std::string& name) const {
        if (node.anchor.empty()) return;
        auto alias = aliases_.find(node.anchor);
        if (alias == aliases_.end()) return;
        refuse(target,
               fmt::format("{} is shared: *{} in line {} refers to it too", name, node.anchor,
                           alias->second->place.line),
               "a value that nothing else uses",
               fmt::format("write the value itself in place of *{} in line {}", node.anchor,
                           alias->second->place.line));
    }

    void check_value(const EditTarget& target) const {
        check_inside(target, target.member->value);
        if (target.member->placed && target.member->value.placed) return;
        refuse(target,
               fmt::format("{} is written in a way that cannot be edited exactly",
                           path_text(target.edit->path)),
               "key: value", "write it as key: value");
    }

    void check_inside(const EditTarget& target, const Node& node) const {
        check_shared(target, node, path_text(target.edit->path));
        for (const Node& item : node.items) check_inside(target, item);
        for (const Member& member : node.members) check_inside(target, member.value);
    }

    const Document& document_;
    Aliases aliases_;
};

void plan_edit(EditPlan& plan, const EditTarget& target, const NewValue& value) {
    bool is_toml = plan.document.format() == Format::toml;
    if (target.edit->remove) {
        target.map->flow ? remove_from_brackets(plan, target)
        : is_toml        ? remove_from_table(plan, target)
                         : remove_from_block(plan, target);
    } else if (target.member != nullptr) {
        change_value(plan, target, value);
    } else {
        target.map->flow ? insert_in_brackets(plan, target, value)
        : is_toml        ? insert_in_table(plan, target, value)
                         : insert_in_block(plan, target, value);
    }
}

// True if the result, parsed again, has exactly the wanted changes.
bool is_exact(const Document& document, const std::string& result,
              const std::vector<EditTarget>& targets, const std::vector<NewValue>& values) {
    try {
        Document after = Document::parse(result, document.file());
        return only_targets_differ(document.root(), after.root(), targets, values);
    } catch (const UserError&) {
        return false;  // the result cannot be parsed
    }
}

[[noreturn]] void refuse_inexact(const Document& document, std::span<const Edit> edits,
                                 const std::vector<EditTarget>& targets) {
    std::vector<Problem> problems;
    for (std::size_t i = 0; edits.size() > 1 && i < edits.size(); ++i) {
        if (std::optional<Problem> problem = check_edit(document, edits[i]))
            problems.push_back(*problem);
    }
    if (!problems.empty()) throw UserError(std::move(problems));
    refuse(targets[0],
           fmt::format("{} is written in a way that cannot be edited exactly",
                       path_text(edits[0].path)),
           "key: value on a line of its own", "make this change by hand");
}

}  // namespace

void refuse(const EditTarget& target, const std::string& found, const std::string& expected,
            const std::string& fix) {
    const Place& place = target.member != nullptr ? target.member->place : target.map->place;
    throw UserError(Problem{place, found, expected, fix});
}

std::string apply_edits(const Document& document, std::span<const Edit> edits) {
    EditPlan plan(document);
    EditLocator locator(document);
    std::vector<Problem> problems;
    std::vector<EditTarget> targets;
    std::vector<NewValue> values;
    std::set<KeyPath> seen;
    auto each = [&](auto&& step) {
        for (std::size_t i = 0; i < edits.size(); ++i) {
            try {
                step(i);
            } catch (const UserError& error) {
                problems.insert(problems.end(), error.problems().begin(), error.problems().end());
            }
        }
        if (!problems.empty()) throw UserError(std::move(problems));
    };
    each([&](std::size_t i) {
        const Edit& edit = edits[i];
        EditTarget target = locator.find(edit);
        if (!seen.insert(edit.path).second) {
            refuse(target, fmt::format("there are two changes for {}", path_text(edit.path)),
                   "one edit for each key", "");
        }
        if (edit.remove) plan.removed.insert(target.member);
        targets.push_back(target);
        values.push_back(edit.remove ? NewValue{} : render_value(document, target));
    });
    each([&](std::size_t i) { plan_edit(plan, targets[i], values[i]); });
    if (edits.empty()) return document.text();
    write_new_pairs(plan);
    plan.comments.write(plan.patches);
    std::optional<std::string> result = plan.patches.apply(document.text());
    if (!result || !is_exact(document, *result, targets, values))
        refuse_inexact(document, edits, targets);
    return *std::move(result);
}

std::optional<Problem> check_edit(const Document& document, const Edit& edit) {
    try {
        (void)apply_edits(document, std::span(&edit, 1));
    } catch (const UserError& error) {
        return error.problems().front();
    }
    return std::nullopt;
}

}  // namespace saturate
