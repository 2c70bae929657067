// SPDX-License-Identifier: Apache-2.0
#include "config/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/file.h"
#include "base/text.h"
#include "config/lines.h"
#include "config/precheck.h"
#include "config/reader.h"

namespace saturate {

namespace {

constexpr std::size_t kMostProblems = 20;  // shown per file; the others are counted

Format format_of(const std::string& file) {
    std::string name = lower(file);
    if (name.ends_with(".json")) return Format::json;
    if (name.ends_with(".toml")) return Format::toml;
    return Format::yaml;
}

void throw_if_any(std::vector<Problem> problems) {
    if (problems.empty()) return;
    std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
        return std::pair(a.where.line, a.where.column) < std::pair(b.where.line, b.where.column);
    });
    auto again = std::unique(problems.begin(), problems.end(), [](const auto& a, const auto& b) {
        return a.where == b.where && a.found == b.found;
    });
    problems.erase(again, problems.end());
    if (problems.size() > kMostProblems) {
        std::size_t more = problems.size() - kMostProblems;
        problems.resize(kMostProblems);
        problems.push_back({.where = {problems[0].where.file},
                            .found = fmt::format("and {} more mistakes like these", more)});
    }
    throw UserError(std::move(problems));
}

const char* kind_text(Node::Kind kind) {
    switch (kind) {
        case Node::Kind::sequence:
            return "a list";
        case Node::Kind::null:
            return "nothing but an empty value";
        default:
            return "a single value";
    }
}

// The last node with this anchor that begins before `before`: YAML allows to redefine anchors.
const Node* find_anchor(const Node& node, std::string_view name, std::size_t before) {
    const Node* found = node.anchor == name && node.begin < before ? &node : nullptr;
    auto look = [&](const Node& child) {
        if (const Node* deeper = find_anchor(child, name, before)) found = deeper;
    };
    for (const Node& item : node.items) look(item);
    for (const Member& member : node.members) look(member.value);
    return found;
}

}  // namespace

std::string path_text(const KeyPath& path) { return join(path, "."); }

const Node* Node::find(std::string_view key) const {
    for (const Member& member : members) {
        if (member.key == key) return &member.value;
    }
    return nullptr;
}

void report_duplicates(const Node& map, std::vector<Problem>& problems) {
    std::unordered_map<std::string_view, const Member*> seen;
    for (const Member& member : map.members) {
        auto [first, is_new] = seen.emplace(member.key, &member);
        if (is_new) continue;
        problems.push_back(
            {.where = member.place,
             .found =
                 fmt::format("the key {} again; it is already in line {}",
                             in_quotes(std::string_view(member.key)), first->second->place.line),
             .expected = "each key once in its map",
             .fix = member.key == "<<" ? "<<: [*one, *two]" : "remove one of the two"});
    }
}

Problem too_deep(Place where) {
    return {std::move(where), fmt::format("lists and maps nested more than {} deep", kDeepest),
            "a configuration with fewer levels", "flatten it"};
}

Problem too_many(Place where) {
    return {std::move(where), fmt::format("more than {} keys, values or lines", kMostValues),
            "a configuration, not a data file", "keep long lists in separate files"};
}

Document Document::parse(std::string text, const std::string& file) {
    throw_if_any(precheck(text, file));
    Document document;
    document.text_ = std::move(text);
    document.file_ = file;
    document.format_ = format_of(file);
    std::vector<Problem> problems;
    document.root_ = document.format_ == Format::json
                         ? read_json(document.text_, document.file_, problems)
                     : document.format_ == Format::toml
                         ? read_toml(document.text_, document.file_, problems)
                         : read_yaml(document.text_, document.file_, problems, document.second_);
    throw_if_any(std::move(problems));
    const Node& root = document.root_;
    bool is_empty = root.kind == Node::Kind::null && root.begin == root.end;
    bool has_no_key = document.format_ == Format::toml && root.members.empty();
    if (is_empty || has_no_key) {
        bool blank = trim(document.text_).empty() || document.text_ == kByteOrderMark;
        throw UserError({.where = {file},
                         .found = blank ? "is empty" : "has only comments",
                         .expected = "a configuration with at least one key",
                         .fix = "name another file, or write a key into it"});
    }
    if (root.kind != Node::Kind::map) {
        throw UserError({.where = root.place,
                         .found = fmt::format("the file is {}", kind_text(root.kind)),
                         .expected = "key: value pairs at the top",
                         .fix = "put it under a key"});
    }
    return document;
}

Document Document::read(const std::string& file) {
    return parse(read_file(file, kLargest, "a configuration"), file);
}

const Node* Document::resolve(const Node& node) const {
    const Node* found = &node;
    if (node.kind == Node::Kind::alias) found = find_anchor(root_, node.text, node.begin);
    return found == nullptr ? &node : found;
}

const Node* Document::find(const KeyPath& path) const {
    const Node* node = &root_;
    for (const std::string& key : path) {
        node = resolve(*node)->find(key);
        if (node == nullptr) return nullptr;
    }
    return node;
}

}  // namespace saturate
