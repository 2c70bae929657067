// SPDX-License-Identifier: Apache-2.0
// The safety net of all edits: checks that the parsed result differs only in the named keys. Also
// joins patches.
#include <algorithm>

#include "config/edit_plan.h"

namespace saturate {

namespace {

bool same(const Node& a, const Node& b, bool compare_quotes) {
    auto same_item = [&](const Node& x, const Node& y) { return same(x, y, compare_quotes); };
    auto same_member = [&](const Member& x, const Member& y) {
        return x.key == y.key && same(x.value, y.value, compare_quotes);
    };
    return a.kind == b.kind && a.text == b.text && (!compare_quotes || a.quoted == b.quoted) &&
           a.anchor == b.anchor && std::ranges::equal(a.items, b.items, same_item) &&
           std::ranges::equal(a.members, b.members, same_member);
}

// Removes the member at the path from the tree and returns its value.
std::optional<Node> take(Node& root, const KeyPath& path) {
    Node* map = &root;
    for (std::size_t i = 0; i < path.size(); ++i) {
        auto member = std::ranges::find(map->members, path[i], &Member::key);
        if (member == map->members.end()) return std::nullopt;
        if (i + 1 == path.size()) {
            Node value = std::move(member->value);
            map->members.erase(member);
            return value;
        }
        map = &member->value;
    }
    return std::nullopt;
}

}  // namespace

bool only_targets_differ(const Node& before, const Node& after,
                         const std::vector<EditTarget>& targets,
                         const std::vector<NewValue>& values) {
    Node left = before;
    Node right = after;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const EditTarget& target = targets[i];
        std::optional<Node> old_value = take(left, target.edit->path);
        std::optional<Node> new_value = take(right, target.edit->path);
        if (old_value.has_value() != (target.member != nullptr)) return false;
        if (new_value.has_value() == target.edit->remove) return false;
        if (!new_value) continue;
        // An anchor before the value stays. A tag may turn a number into a word.
        new_value->anchor.clear();
        if (!same(*new_value, values[i].node, false)) return false;
    }
    return same(left, right, true);
}

void Patches::add(std::size_t begin, std::size_t end, std::string text, Rank rank,
                  std::size_t depth) {
    patches_.push_back({begin, end, rank, depth, std::move(text)});
}

std::optional<std::string> Patches::apply(std::string_view text) const {
    std::vector<const Patch*> order;
    for (const Patch& patch : patches_) order.push_back(&patch);
    std::ranges::stable_sort(order, [](const Patch* a, const Patch* b) {
        if (a->begin != b->begin) return a->begin < b->begin;
        return a->rank != b->rank ? a->rank < b->rank : a->depth > b->depth;
    });
    std::string out;
    std::size_t done = 0;
    for (const Patch* patch : order) {
        if (patch->begin < done || patch->end < patch->begin || patch->end > text.size())
            return std::nullopt;
        out += text.substr(done, patch->begin - done);
        out += patch->text;
        done = patch->end;
    }
    out += text.substr(done);
    return out;
}

}  // namespace saturate
