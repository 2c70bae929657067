// SPDX-License-Identifier: Apache-2.0
// Edits of files in the style of real frameworks (edit_cases/) and what is refused, word for word.
#include "config/edit.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "config/edit_check.h"

namespace saturate {
namespace {

// "set a.b = 8 | reason", "add a.b = 8 behind c | reason", "remove a.b"
Edit parse_edit(std::string_view line) {
    Edit edit;
    auto cut = [&line](std::string_view mark) {
        std::size_t at = line.rfind(mark);
        if (at == std::string_view::npos) return std::string();
        std::string tail(trim(line.substr(at + mark.size())));
        line = line.substr(0, at);
        return tail;
    };
    edit.reason = cut(" | ");
    std::string verb(line.substr(0, line.find(' ')));
    line.remove_prefix(verb.size() + 1);
    edit.remove = verb == "remove";
    if (verb == "add") edit.behind = cut(" behind ");
    std::size_t equals = line.find(" = ");
    if (!edit.remove) edit.value = line.substr(equals + 3);
    for (std::string_view key : split(line.substr(0, equals), '.')) edit.path.emplace_back(key);
    return edit;
}

std::string edited(const std::string& text, std::initializer_list<const char*> lines,
                   const std::string& file = "job.yaml") {
    std::vector<Edit> edits;
    for (const char* line : lines) edits.push_back(parse_edit(line));
    return apply_edits(Document::parse(text, file), edits);
}

std::string refusal(const std::string& text, std::initializer_list<const char*> lines,
                    const std::string& file = "job.yaml") {
    try {
        return "no error:\n" + edited(text, lines, file);
    } catch (const UserError& error) {
        return error.what();
    }
}

std::filesystem::path cases() {
    return std::filesystem::path(SATURATE_SOURCE_DIR) / "tests/config/edit_cases";
}

std::vector<std::string> case_names() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(cases()))
        names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
}

class EditCaseTest : public testing::TestWithParam<std::string> {};

TEST_P(EditCaseTest, ChangesTheNamedKeysAndNoOtherByte) {
    std::filesystem::path folder = cases() / GetParam();
    std::string extension;
    for (const char* known : {".yaml", ".json", ".toml"}) {
        if (std::filesystem::exists(folder / ("before" + std::string(known)))) extension = known;
    }
    Document before = Document::read(folder / ("before" + extension));
    std::vector<Edit> edits;
    std::string lines = read_file(folder / "edits.txt", 1 << 16, "edits");
    for (std::string_view line : split(lines, '\n')) {
        if (!line.empty()) edits.push_back(parse_edit(line));
    }
    std::string result = apply_edits(before, edits);
    EXPECT_EQ(result, read_file(folder / ("after" + extension), 1 << 16, "the expected result"));
    edit_check::expect_exact(before, result, edits);
}

INSTANTIATE_TEST_SUITE_P(Cases, EditCaseTest, testing::ValuesIn(case_names()),
                         [](const auto& info) { return info.param; });

TEST(EditTest, NoEditIsNoChange) {
    std::string text = "a: 1\r\n\r\nb:   [ ]  # x";
    EXPECT_EQ(apply_edits(Document::parse(text, "job.yaml"), {}), text);
}

TEST(EditTest, ASecondRunAddsNoSecondReason) {
    std::string once = edited("a: 1  # mine\n", {"set a = 2 | why"});
    EXPECT_EQ(once, "a: 2  # mine; why\n");
    EXPECT_EQ(edited(once, {"set a = 2 | why"}), once);
}

TEST(EditTest, AReasonIsOneLine) {
    Document document = Document::parse("a: 1\nb: 2\n", "job.yaml");
    Edit edit{.path = {"a"}, .value = "2", .reason = "one\r\n  two\xE2\x80\xA8three\t"};
    EXPECT_EQ(apply_edits(document, std::span(&edit, 1)), "a: 2  # one two three\nb: 2\n");
}

TEST(EditTest, RefusesWhatComesThroughAMergeKey) {
    std::string text = "base: &base\n  lr: 1\ntrain:\n  <<: *base\n  batch: 4\n";
    EXPECT_EQ(refusal(text, {"set train.lr = 2"}),
              "error: job.yaml:4:3: train.lr comes from line 2 through the merge key <<\n"
              "  expected: a key written in its own map\n"
              "  fix:      write lr: 2 into that map");
    std::string list = "a: &a {x: 1}\nb: &b {<<: *a}\nc:\n  <<: [*b]\n  y: 1\n";
    EXPECT_EQ(refusal(list, {"add c.x = 2"}),
              "error: job.yaml:4:3: c.x comes from line 1 through the merge key <<\n"
              "  expected: a key written in its own map\n"
              "  fix:      write x: 2 into that map");
}

TEST(EditTest, RefusesToEditThroughAnAlias) {
    EXPECT_EQ(refusal("base: &base\n  lr: 1\ntrain: *base\n", {"set train.lr = 2"}),
              "error: job.yaml:3:8: train is the alias *base, which refers to line 2\n"
              "  expected: a map with its own keys\n"
              "  fix:      train with <<: *base and the key that is to differ");
}

TEST(EditTest, RefusesToChangeWhatAnAliasShares) {
    EXPECT_EQ(refusal("lr: &lr 1\nother: *lr\n", {"set lr = 2"}),
              "error: job.yaml:1:1: lr is shared: *lr in line 2 refers to it too\n"
              "  expected: a value that nothing else uses\n"
              "  fix:      write the value itself in place of *lr in line 2");
    EXPECT_EQ(refusal("base: &base\n  lr: 1\nt: *base\n", {"set base.lr = 2"}),
              "error: job.yaml:2:3: base is shared: *base in line 3 refers to it too\n"
              "  expected: a value that nothing else uses\n"
              "  fix:      write the value itself in place of *base in line 3");
    EXPECT_EQ(refusal("a: [&x 1]\nb: *x\n", {"remove a"}),
              "error: job.yaml:1:1: a is shared: *x in line 2 refers to it too\n"
              "  expected: a value that nothing else uses\n"
              "  fix:      write the value itself in place of *x in line 2");
}

TEST(EditTest, RefusesBlocksOfTextAndCollections) {
    EXPECT_EQ(refusal("a: |\n  text\n", {"set a = 1"}),
              "error: job.yaml:1:1: a is a block of text (|)\n"
              "  expected: a single value\n"
              "  fix:      change it by hand");
    EXPECT_EQ(refusal("a:\n  b: 1\n", {"set a = 1"}),
              "error: job.yaml:1:1: a is a map over several lines\n"
              "  expected: a single value\n"
              "  fix:      change it by hand");
    EXPECT_EQ(refusal("a: [1,\n  2]\n", {"set a = 1"}),
              "error: job.yaml:1:1: a is a list over several lines\n"
              "  expected: a single value\n"
              "  fix:      change it by hand");
}

TEST(EditTest, RefusesWhatHasNoPlaceToGo) {
    EXPECT_EQ(refusal("a: 1\n", {"add b.c = 1"}),
              "error: job.yaml:1:1: there is no b\n"
              "  expected: an existing map to add the key to\n"
              "  fix:      write b: with a key below it first");
    EXPECT_EQ(refusal("a: 1\n", {"add a.c = 1"}),
              "error: job.yaml:1:4: a is not a map\n"
              "  expected: a map that contains the key");
    EXPECT_EQ(refusal("a: 1\n", {"remove b"}),
              "error: job.yaml:1:1: there is no b to remove\n"
              "  expected: a key of the file");
    EXPECT_EQ(refusal("a:\n  b: 1\n", {"remove a.b"}),
              "error: job.yaml:2:3: a.b is the only key of its map\n"
              "  expected: another key beside it\n"
              "  fix:      remove the whole map by hand");
    EXPECT_EQ(refusal("[a.b]\nc = 1\n", {"add a.x = 1"}, "job.toml"),
              "error: job.toml:1:1: the table a has no line of its own\n"
              "  expected: a [header] with keys below it\n"
              "  fix:      write [a] first");
    EXPECT_EQ(refusal("[a]\nb = 1\n", {"remove a"}, "job.toml"),
              "error: job.toml:1:2: a is a table\n"
              "  expected: a key = value line\n"
              "  fix:      remove the table by hand");
    EXPECT_EQ(refusal("a: {x: 1, # c\n  y: 2}\n", {"remove a.x"}),
              "error: job.yaml:1:5: a.x has a comment next to it inside the brackets\n"
              "  expected: a pair without a comment\n"
              "  fix:      remove it by hand");
}

TEST(EditTest, RefusesValuesThatCannotStandThere) {
    EXPECT_EQ(refusal("a: 1\n", {"set a = [1, 2"}),
              "error: job.yaml:1:1: a cannot become \"[1, 2\"\n"
              "  expected: one value on one line");
    EXPECT_EQ(refusal("a = 1\n", {"set a = [null]"}, "job.toml"),
              "error: job.toml:1:1: a cannot become \"[null]\"\n"
              "  expected: one value on one line");
    Document document = Document::parse("a: 1\n", "job.yaml");
    Edit edit{.path = {"a"}, .value = "1\nb: 2", .reason = ""};
    std::optional<Problem> problem = check_edit(document, edit);
    ASSERT_TRUE(problem.has_value());
    EXPECT_EQ(problem->text(),
              "error: job.yaml:1:1: a cannot become \"1\\nb: 2\"\n"
              "  expected: one value on one line");
}

TEST(EditTest, NamesEveryEditThatCannotBeDone) {
    EXPECT_EQ(refusal("a: |\n  x\nb: 1\nc:\n  d: 1\n", {"set a = 1", "set b = 2", "set c = 3"}),
              "error: job.yaml:1:1: a is a block of text (|)\n"
              "  expected: a single value\n"
              "  fix:      change it by hand\n"
              "error: job.yaml:4:1: c is a map over several lines\n"
              "  expected: a single value\n"
              "  fix:      change it by hand");
    EXPECT_EQ(refusal("a: 1\n", {"set a = 1", "set a = 2"}),
              "error: job.yaml:1:1: there are two changes for a\n"
              "  expected: one edit for each key");
}

// Found by fuzzing: the tag of the next key was taken for a part of the empty value before it.
TEST(EditTest, AnEmptyValueEndsBeforeTheNextKeysTag) {
    EXPECT_EQ(edited("a: &x\n!t b: 1\n", {"set a = 2", "add c = 3 behind a"}),
              "a: &x 2\nc: 3\n!t b: 1\n");
}

// Found by fuzzing: the anchor of a removed key went over to the next key's line.
TEST(EditTest, AKeyBehindItsAnchorIsNotRemoved) {
    EXPECT_EQ(refusal("&a b: |\n  text\nc: 1\n", {"remove b"}),
              "error: job.yaml:1:4: b does not begin its line\n"
              "  expected: a key on a line of its own\n"
              "  fix:      remove it by hand");
}

// Found by fuzzing: a key added behind one that goes left an empty line at the end of the file.
TEST(EditTest, AKeyAddedBehindOneThatGoesFollowsWhatStays) {
    EXPECT_EQ(edited("a: 1\nb: 2", {"remove b", "add c = 3 behind b"}), "a: 1\nc: 3\n");
    EXPECT_EQ(edited("a = 1\nb = 2\n", {"remove b", "add c = 3"}, "job.toml"), "a = 1\nc = 3\n");
    EXPECT_EQ(edited("m: {a: 1, b: 2}\n", {"remove m.b", "add m.c = 3"}), "m: {a: 1, c: 3}\n");
}

TEST(EditTest, TheFirstKeyOfAListItemIsNotReachedByAPath) {
    EXPECT_EQ(refusal("a:\n- b: 1\n", {"set a.b = 2"}),
              "error: job.yaml:2:1: a is not a map\n"
              "  expected: a map that contains the key");
}

}  // namespace
}  // namespace saturate
