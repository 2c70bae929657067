// SPDX-License-Identifier: Apache-2.0
// Files made at random from a seed, in every way of writing a value that people use, and edits of
// keys they have and have not. Nothing here may be refused: what is hard to edit is not generated.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "config/edit.h"
#include "config/edit_check.h"

namespace saturate {
namespace {

class Maker {
  public:
    explicit Maker(unsigned seed) : random_(seed) {}

    int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
    bool chance(int percent) { return below(100) < percent; }
    template <std::size_t N>
    std::string pick(const char* const (&choices)[N]) {
        return choices[below(static_cast<int>(N))];
    }

    std::string key() {
        static const char* const kStems[] = {"batch_size", "lr",  "学习率", "use-amp",
                                             "workers",    "a b", "X"};
        return fmt::format("{}_{}", pick(kStems), ++keys_);
    }

    std::string scalar() {
        static const char* const kScalars[] = {"8",          "3.0e-4", "true", "bf16",   "'it''s'",
                                               "\"q\\\"x\"", "中文",   "a:b",  "x#y",    "~",
                                               "null",       "''",     "-1",   ".5",     "a b  c",
                                               "\"# no\"",   "1_000",  "yes",  "!!str 8"};
        return pick(kScalars);
    }

    // A YAML map of a few keys at this indentation.
    void yaml_map(std::string& out, int indent, int depth) {
        std::string margin(static_cast<std::size_t>(indent), ' ');
        for (int count = 2 + below(5); count > 0; --count) {
            if (chance(20)) out += end();
            if (chance(20)) out += margin + "# about the next key" + end();
            out += margin + key() + ":";
            int kind = below(depth > 0 ? 12 : 8);
            if (kind < 5) {
                out += (chance(20) ? "   " : " ") + scalar() + comment();
            } else if (kind == 5) {
                out += comment();
            } else if (kind == 6) {
                out += " " + flow(2) + comment();
            } else if (kind == 7) {
                block_value(out, margin);
            } else {
                out += comment();
                yaml_map(out, indent + 2 + below(3), depth - 1);
            }
        }
    }

    std::string json_map(int indent, int depth) {
        std::string margin(static_cast<std::size_t>(indent), ' ');
        std::string out = "{";
        bool lines = chance(70);
        int count = below(4) + (indent == 0 ? 2 : 0);
        for (int i = 0; i < count; ++i) {
            out += lines ? end() + margin + "  " : " ";
            out += fmt::format("\"{}\"{}", key(), chance(80) ? ": " : " : ");
            static const char* const kValues[] = {"8",        "3e-4",      "true",   "null",
                                                  "\"auto\"", "\"中\\n\"", "[1, 2]", "[ ]"};
            out += depth > 0 && chance(30) ? json_map(indent + 2, depth - 1) : pick(kValues);
            out += i + 1 < count ? "," : "";
        }
        return out + (lines && count > 0 ? end() + margin : "") + "}";
    }

    std::string toml() {
        static const char* const kValues[] = {"8",        "3e-4",       "true",
                                              "\"auto\"", "'c:\\x'",    "[1, 2]",
                                              "inf",      "[\n  1,\n]", "\"\"\"\nx\"\"\"",
                                              "{ }",      "1979-05-27"};
        std::string out;
        for (int table = 0; table < 3; ++table) {
            if (table > 0)
                out += fmt::format("[table_{}{}]", table, chance(40) ? ".sub" : "") + comment();
            for (int count = 1 + below(4); count > 0; --count) {
                if (chance(20)) out += end();
                std::string name = key();
                bool bare = name.find_first_of(" 学") == std::string::npos;
                out += chance(20) ? "  " : "";
                out += (bare ? name : "\"" + name + "\"") + " = ";
                out += chance(20) ? "{ a = 1, b = 'x' }" : pick(kValues);
                out += comment();
            }
        }
        return out;
    }

    std::string end() const { return crlf_ ? "\r\n" : "\n"; }
    void use_crlf() { crlf_ = true; }

  private:
    std::string comment() {
        static const char* const kComments[] = {"", "", "", "  # 说明", " # a: b, c", "   "};
        return pick(kComments) + end();
    }

    std::string flow(int depth) {
        std::string out = "{";
        for (int count = below(4); count > 0; --count) {
            static const char* const kPlain[] = {"1",  "true",   "'x, y'", "\"}\"",
                                                 "中", "[1, 2]", "{}"};
            out += key() + ": " + (depth > 0 && chance(30) ? flow(depth - 1) : pick(kPlain));
            out += count > 1 ? (chance(80) ? ", " : " , ") : "";
        }
        return out + "}";
    }

    void block_value(std::string& out, const std::string& margin) {
        std::string below_it = margin + "  ";
        switch (below(4)) {
            case 0:
                out += " |" + end() + below_it + "text # no comment" + end() + end() + below_it +
                       "  more" + end();
                break;
            case 1:
                out += " >-" + end() + below_it + "folded: text" + end();
                break;
            case 2:
                out += end() + margin + "- 1" + end() + margin + "-" + end() + margin + "- k: v" +
                       end();
                break;
            default:
                out += " first" + end() + below_it + "second" + comment();
        }
    }

    std::mt19937 random_;
    bool crlf_ = false;
    int keys_ = 0;
};

void collect_maps(const Node& node, const KeyPath& path,
                  std::vector<std::pair<KeyPath, const Node*>>& out) {
    if (node.kind != Node::Kind::map) return;
    out.emplace_back(path, &node);
    for (const Member& member : node.members) {
        KeyPath deeper = path;
        deeper.push_back(member.key);
        collect_maps(member.value, deeper, out);
    }
}

bool can_change(const Document& document, const Node& value) {
    std::string raw = document.text().substr(value.begin, value.end - value.begin);
    bool block = raw.starts_with('|') || raw.starts_with('>');
    bool collection = value.kind == Node::Kind::map || value.kind == Node::Kind::sequence;
    return !block && !collection;
}

// A few edits, each of another key and none inside what another removes.
std::vector<Edit> choose(Maker& maker, const Document& document) {
    static const char* const kValues[] = {"16", "0.5", "false", "fp16", "it's", "a: b # c", "中文"};
    static const char* const kReasons[] = {"", "fits", "原因", "two\nlines # x"};
    std::vector<std::pair<KeyPath, const Node*>> maps;
    collect_maps(document.root(), {}, maps);
    std::vector<Edit> edits;
    bool toml = document.format() == Format::toml;
    for (int tries = 0; tries < 6; ++tries) {
        auto& [path, map] =
            maps[static_cast<std::size_t>(maker.below(static_cast<int>(maps.size())))];
        bool implicit = toml && !path.empty() && path.size() == 1 && map->members.size() == 1 &&
                        map->members[0].key == "sub";
        if (implicit) continue;
        Edit edit{.path = path, .value = maker.pick(kValues), .reason = maker.pick(kReasons)};
        const Member* member = map->members.empty()
                                   ? nullptr
                                   : &map->members[static_cast<std::size_t>(
                                         maker.below(static_cast<int>(map->members.size())))];
        int action = maker.below(4);
        if (member == nullptr || action == 0) {
            edit.path.push_back(fmt::format("added_{}", tries));
            if (member != nullptr && maker.chance(50)) edit.behind = member->key;
        } else {
            edit.path.push_back(member->key);
            edit.remove = action == 1;
            bool table = toml && member->value.kind == Node::Kind::map && !member->value.flow;
            if (edit.remove ? table || edits.size() > 0 || map->members.size() < 2
                            : !can_change(document, member->value))
                continue;
        }
        bool meets = std::ranges::any_of(edits, [&](const Edit& other) {
            return edit_check::is_named(edit.path, {other}) ||
                   edit_check::is_named(other.path, {edit}) ||
                   (other.remove && (edit.behind == other.path.back() || map->flow));
        });
        if (!meets) edits.push_back(std::move(edit));
    }
    return edits;
}

void try_file(Maker& maker, std::string text, const std::string& file) {
    if (maker.chance(30)) text = "\xEF\xBB\xBF" + text;
    if (maker.chance(30)) text = text.substr(0, text.find_last_not_of("\r\n") + 1);
    Document before = Document::parse(text, file);
    std::vector<Edit> edits = choose(maker, before);
    std::string result;
    std::string trace = text;
    for (const Edit& edit : edits)
        trace += fmt::format("\n{}{} = {} behind {}", edit.remove ? "remove " : "",
                             path_text(edit.path), edit.value, edit.behind);
    SCOPED_TRACE(trace);
    ASSERT_NO_THROW(result = apply_edits(before, edits));
    edit_check::expect_exact(before, result, edits);
}

TEST(EditRandomTest, YamlFilesKeepEveryOtherByte) {
    for (unsigned seed = 1; seed <= 400 && !HasFailure(); ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        Maker maker(seed);
        if (maker.chance(30)) maker.use_crlf();
        std::string text = maker.chance(20) ? "---" + maker.end() : "";
        maker.yaml_map(text, 0, 3);
        try_file(maker, text, "random.yaml");
    }
}

TEST(EditRandomTest, JsonFilesKeepEveryOtherByte) {
    for (unsigned seed = 1; seed <= 200 && !HasFailure(); ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        Maker maker(seed);
        if (maker.chance(30)) maker.use_crlf();
        try_file(maker, maker.json_map(0, 3) + maker.end(), "random.json");
    }
}

TEST(EditRandomTest, TomlFilesKeepEveryOtherByte) {
    for (unsigned seed = 1; seed <= 200 && !HasFailure(); ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        Maker maker(seed);
        try_file(maker, maker.toml(), "random.toml");
    }
}

}  // namespace
}  // namespace saturate
