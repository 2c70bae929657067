// SPDX-License-Identifier: Apache-2.0
// Checks the promise of apply_edits() independently of its own check: before and after, parsed
// again, differ in exactly the named keys, and every line that no edit names keeps its bytes and
// its place in the order.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "config/edit.h"

namespace saturate::edit_check {

using Values = std::map<KeyPath, std::string>;

// Collects every value by its path; list items by their index.
inline void flatten(const Node& node, const KeyPath& path, Values& out) {
    std::string& here = out[path];
    auto below = [&](const std::string& key) {
        KeyPath deeper = path;
        deeper.push_back(key);
        return deeper;
    };
    switch (node.kind) {
        case Node::Kind::map:
            here = "map";
            break;
        case Node::Kind::sequence:
            here = "list";
            break;
        case Node::Kind::null:
            here = "null";
            break;
        case Node::Kind::alias:
            here = "*" + node.text;
            break;
        case Node::Kind::scalar:
            here = (node.quoted ? "word " : "plain ") + node.text;
            break;
    }
    for (std::size_t i = 0; i < node.items.size(); ++i)
        flatten(node.items[i], below("[" + std::to_string(i) + "]"), out);
    for (const Member& member : node.members) flatten(member.value, below(member.key), out);
}

inline bool is_named(const KeyPath& path, const std::vector<Edit>& edits) {
    return std::ranges::any_of(edits, [&](const Edit& edit) {
        return edit.path.size() <= path.size() &&
               std::equal(edit.path.begin(), edit.path.end(), path.begin());
    });
}

inline void expect_only_named_keys_differ(const Document& before, const Document& after,
                                          const std::vector<Edit>& edits) {
    Values left, right;
    flatten(before.root(), {}, left);
    flatten(after.root(), {}, right);
    for (const Edit& edit : edits) {
        EXPECT_EQ(right.count(edit.path), edit.remove ? 0U : 1U) << path_text(edit.path);
        const Node* node = after.find(edit.path);
        bool is_word = node != nullptr && edit.value.find_first_of("[{\"'~") == std::string::npos &&
                       edit.value != "null";
        if (is_word) {
            EXPECT_EQ(node->text, edit.value) << path_text(edit.path);
        }
    }
    std::erase_if(left, [&](const auto& pair) { return is_named(pair.first, edits); });
    std::erase_if(right, [&](const auto& pair) { return is_named(pair.first, edits); });
    EXPECT_EQ(left, right);
}

// Returns the lines outside the named keys. In brackets, the neighbouring line gains or loses a
// comma, so all lines of a bracketed map count as named if one of its keys is.
inline std::vector<std::string> other_lines(const Document& document,
                                            const std::vector<Edit>& edits) {
    const std::string& text = document.text();
    std::set<std::size_t> named;
    auto name = [&](std::size_t begin, std::size_t end) {
        auto line_of = [&](std::size_t at) {
            auto stop = text.begin() + static_cast<std::ptrdiff_t>(at);
            return static_cast<std::size_t>(std::count(text.begin(), stop, '\n'));
        };
        for (std::size_t line = line_of(begin); line <= line_of(end); ++line) named.insert(line);
    };
    for (const Edit& edit : edits) {
        const Node* map = &document.root();
        for (std::size_t i = 0; i < edit.path.size(); ++i) {
            auto member = std::ranges::find(map->members, edit.path[i], &Member::key);
            if (member == map->members.end()) break;
            bool is_last = i + 1 == edit.path.size();
            if (is_last) name(member->begin, std::max(member->end, member->value.end));
            map = &member->value;
            if (!is_last && i + 2 == edit.path.size() && map->flow) name(map->begin, map->end);
        }
        if (document.format() == Format::json && edit.path.size() == 1) {
            for (const Member& member : document.root().members)
                name(member.value.end, member.value.end);
        }
    }
    std::vector<std::string> out;
    std::vector<std::string_view> lines = split(text, '\n');
    if (lines[0].starts_with("\xEF\xBB\xBF"))
        lines[0].remove_prefix(3);  // the byte order mark belongs to the file, not to the line
    for (std::size_t i = 0; i < lines.size(); ++i) {
        bool is_end = i + 1 == lines.size() && lines[i].empty();
        if (!is_end && !named.count(i)) out.emplace_back(lines[i]);
    }
    return out;
}

inline void expect_exact(const Document& before, const std::string& result,
                         const std::vector<Edit>& edits) {
    Document after = Document::parse(result, before.file());
    EXPECT_EQ(result.starts_with("\xEF\xBB\xBF"), before.text().starts_with("\xEF\xBB\xBF"));
    expect_only_named_keys_differ(before, after, edits);
    std::vector<std::string> left = other_lines(before, edits);
    std::vector<std::string> right = other_lines(after, edits);
    // The last line of a file without a final newline gets one if another line follows it.
    if (!left.empty() && !right.empty() && left.back() + "\r" == right.back()) left.back() += "\r";
    EXPECT_EQ(left, right);
}

}  // namespace saturate::edit_check
