// SPDX-License-Identifier: Apache-2.0
// Any bytes as a configuration and a handful of edits of keys it has or has not. Done or refused
// with a UserError; when done, the promise is checked apart from the editor's own check: the values
// of all other keys are as before (YAML by the library's own tree, aliases expanded), and lines
// that no edit names are the same bytes in the same order.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "config/edit.h"
#include "fuzz_input.h"

namespace {

using namespace saturate;

void collect_maps(const Node& node, const KeyPath& path,
                  std::vector<std::pair<KeyPath, const Node*>>& out) {
    if (node.kind != Node::Kind::map) return;
    out.emplace_back(path, &node);
    for (const Member& member : node.members) {
        KeyPath below = path;
        below.push_back(member.key);
        collect_maps(member.value, below, out);
    }
}

std::vector<Edit> choose_edits(const Document& document, Bytes& bytes) {
    static const char* const kValues[] = {"8",    "true",  "bf16",      "3.0e-4", "[1, 2]",
                                          "a: b", "\"q\"", "it's # no", "{x: 1}", "中文",
                                          "~",    "-1",    "'w'",       "*x"};
    static const char* const kReasons[] = {"", "why", "two\nlines", "原因 # more"};
    std::vector<std::pair<KeyPath, const Node*>> maps;
    collect_maps(document.root(), {}, maps);
    std::vector<Edit> edits;
    for (int count = 1 + bytes.next() % 3; count > 0; --count) {
        const auto& chosen = maps[(bytes.next() * 256 + bytes.next()) % maps.size()];
        const Node* map = chosen.second;
        Edit edit{.path = chosen.first,
                  .value = kValues[bytes.next() % std::size(kValues)],
                  .reason = kReasons[bytes.next() % std::size(kReasons)]};
        std::uint8_t action = bytes.next() % 4;
        auto any_key = [&] {
            return map->members.empty() ? std::string("none")
                                        : map->members[bytes.next() % map->members.size()].key;
        };
        edit.path.push_back(action == 0 ? "added_key" : any_key());
        if (action == 0 && bytes.next() % 2) edit.behind = any_key();
        edit.remove = action == 1;
        edits.push_back(std::move(edit));
    }
    return edits;
}

bool is_named(const KeyPath& path, const std::vector<Edit>& edits) {
    return std::ranges::any_of(edits, [&](const Edit& edit) {
        return edit.path.size() <= path.size() &&
               std::equal(edit.path.begin(), edit.path.end(), path.begin());
    });
}

// Every value of the library's tree that no edit names. Files with aliases are left to the line
// check: expanded they can be endless.
void flatten(const YAML::Node& node, const KeyPath& path, const std::vector<Edit>& edits,
             std::map<KeyPath, std::string>& out) {
    if (!path.empty() && is_named(path, edits)) return;
    if (node.IsMap()) {
        out[path] = "map";
        for (const auto& pair : node) {
            KeyPath below = path;
            below.push_back(pair.first.Scalar());
            flatten(pair.second, below, edits, out);
        }
    } else if (node.IsSequence()) {
        out[path] = "sequence";
        for (std::size_t i = 0; i < node.size(); ++i) {
            KeyPath below = path;
            below.push_back("\n" + std::to_string(i));
            flatten(node[i], below, edits, out);
        }
    } else {
        out[path] = node.IsNull() ? "null" : "scalar " + node.Tag() + " " + node.Scalar();
    }
}

bool has_alias(const Node& node) {
    return node.kind == Node::Kind::alias || std::ranges::any_of(node.items, has_alias) ||
           std::ranges::any_of(node.members, [](const Member& m) { return has_alias(m.value); });
}

// The lines outside every named key. Brackets get commas where keys come and go, so the lines of
// the map around a key in brackets are left out as well.
std::vector<std::string> other_lines(const Document& document, const std::vector<Edit>& edits) {
    std::vector<std::string_view> lines = split(document.text(), '\n');
    if (lines[0].starts_with("\xEF\xBB\xBF"))
        lines[0].remove_prefix(3);  // the file's, not the line's
    std::set<std::size_t> named;
    auto name = [&](std::size_t begin, std::size_t end) {
        auto line_of = [&](std::size_t at) {
            return std::count(document.text().begin(),
                              document.text().begin() + static_cast<std::ptrdiff_t>(at), '\n');
        };
        for (auto line = line_of(begin); line <= line_of(end); ++line)
            named.insert(static_cast<std::size_t>(line));
    };
    for (const Edit& edit : edits) {
        const Node* map = &document.root();
        for (const std::string& key : edit.path) {
            if (map->flow) name(map->begin, map->end);
            auto member = std::ranges::find(map->members, key, &Member::key);
            if (member == map->members.end()) break;
            map = &member->value;
            if (&key == &edit.path.back())
                name(member->begin, std::max(member->end, member->value.end));
        }
    }
    std::vector<std::string> out;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        bool is_end = i + 1 == lines.size() && lines[i].empty();
        if (named.count(i) || is_end) continue;
        // A last line without its newline gets one when a line comes behind it.
        out.emplace_back(lines[i].ends_with('\r') ? lines[i].substr(0, lines[i].size() - 1)
                                                  : lines[i]);
    }
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 12) return 0;
    const char* file = data[0] == 'J' ? "a.json" : data[0] == 'T' ? "a.toml" : "a.yaml";
    // The choices stand at the end, so that the corpus of the reader serves here too.
    std::size_t choices = std::min<std::size_t>(size / 2, 24);
    Bytes bytes{data + size - choices, choices};
    std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
    try {
        Document before = Document::parse(text, file);
        std::vector<Edit> edits = choose_edits(before, bytes);
        std::string result = apply_edits(before, edits);
        Document after = Document::parse(result, file);
        require(other_lines(before, edits) == other_lines(after, edits));
        if (before.format() == Format::yaml && !has_alias(before.root())) {
            std::map<KeyPath, std::string> left, right;
            flatten(YAML::Load(text), {}, edits, left);
            flatten(YAML::Load(result), {}, edits, right);
            require(left == right);
        }
    } catch (const UserError& error) {
        require(!error.problems().empty() && !error.problems()[0].found.empty());
    }
    return 0;
}
