// SPDX-License-Identifier: Apache-2.0
// Bad and hostile configurations: the whole message of each. None of these may be slow, deep or
// large: that they end at all is the test.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "config/document.h"
#include "config/edit.h"
#include "config/message_of.h"
#include "support/run.h"

namespace saturate {
namespace {

std::string message_of_file(const std::string& file) {
    try {
        (void)Document::read(file);
    } catch (const UserError& error) {
        return error.what();
    }
    return "no error";
}

TEST(BadInputTest, MissingFileAndDirectory) {
    TemporaryFolder folder;
    std::string missing = folder.path() / "none.yaml";
    EXPECT_EQ(message_of_file(missing),
              "error: " + missing +
                  ": cannot be read: No such file or directory\n"
                  "  expected: a configuration that exists and is readable");
    EXPECT_EQ(message_of_file(folder.path()), "error: " + folder.path().string() +
                                                  ": is a directory\n"
                                                  "  expected: a configuration, one file");
}

TEST(BadInputTest, AHundredMegabytesAreRefusedUnread) {
    TemporaryFolder folder;
    std::string file = folder.file("large.yaml", "a: 1\n");
    std::filesystem::resize_file(file, 100 << 20);  // a hole: takes no room on the disk
    EXPECT_EQ(message_of_file(file), "error: " + file +
                                         ": is larger than 16.0 MiB\n"
                                         "  expected: a configuration of at most 16.0 MiB");
}

TEST(BadInputTest, EmptyFilesAndCommentsOnly) {
    const char* kRest =
        "\n  expected: a configuration with at least one key"
        "\n  fix:      name another file, or write a key into it";
    for (const char* text : {"", "\n", "  \r\n\t\n", "\xEF\xBB\xBF"})
        EXPECT_EQ(message_of(text), std::string("error: job.yaml: is empty") + kRest) << text;
    for (const char* text : {"# note\n", "---\n# note\n", "---\n...\n"})
        EXPECT_EQ(message_of(text), std::string("error: job.yaml: has only comments") + kRest);
    EXPECT_EQ(message_of("# note\n", "job.toml"),
              std::string("error: job.toml: has only comments") + kRest);
    EXPECT_EQ(message_of(" \n", "job.json"), std::string("error: job.json: is empty") + kRest);
}

TEST(BadInputTest, BinaryAndOtherEncodings) {
    EXPECT_EQ(message_of(std::string("PK\x03\x04\0\0", 6)),
              "error: job.yaml: is a binary file\n"
              "  expected: a configuration as text: YAML, JSON or TOML\n"
              "  fix:      name the configuration, not a checkpoint or an archive");
    EXPECT_EQ(message_of(std::string("\xFF\xFE"
                                     "a\0",
                                     4)),
              "error: job.yaml: is UTF-16 text\n"
              "  expected: UTF-8\n"
              "  fix:      iconv -f UTF-16 -t UTF-8 job.yaml > new.yaml");
    EXPECT_EQ(message_of("a: 1\nb: \xC5\xFA\n"),
              "error: job.yaml:2:4: is not UTF-8 text from here on: \"\\xc5\\xfa\\n\"\n"
              "  expected: UTF-8\n"
              "  fix:      iconv -f GB18030 -t UTF-8 job.yaml > new.yaml, if it is Chinese text in "
              "another encoding");
    for (const char* broken :
         {"a: \xC0\x80", "a: \xED\xA0\x80", "a: \xF4\x90\x80\x80", "a: \xE4\xB8"})
        EXPECT_NE(message_of(broken).find("is not UTF-8"), std::string::npos) << broken;
    EXPECT_EQ(message_of("a: \x04 b\n"),
              "error: job.yaml:1:4: a control character: \"\\x04\"\n"
              "  expected: text, with lines that end in LF or CRLF\n"
              "  fix:      remove it");
    EXPECT_EQ(message_of("a: 1\rb: 2\r"),
              "error: job.yaml:1:5: a carriage return without a line feed\n"
              "  expected: text, with lines that end in LF or CRLF\n"
              "  fix:      mac2unix, or remove it");
}

TEST(BadInputTest, EveryDuplicateKeyIsNamed) {
    EXPECT_EQ(message_of("a: 1\nb: {x: 1, x: 2}\na: 2\nbase: &b {y: 1}\nc:\n  <<: *b\n  <<: *b\n"),
              "error: job.yaml:2:11: the key \"x\" again; it is already in line 2\n"
              "  expected: each key once in its map\n"
              "  fix:      remove one of the two\n"
              "error: job.yaml:3:1: the key \"a\" again; it is already in line 1\n"
              "  expected: each key once in its map\n"
              "  fix:      remove one of the two\n"
              "error: job.yaml:7:3: the key \"<<\" again; it is already in line 6\n"
              "  expected: each key once in its map\n"
              "  fix:      <<: [*one, *two]");
}

TEST(BadInputTest, MistakesBeforeASyntaxErrorAreNamedToo) {
    EXPECT_EQ(message_of("x:\n  a: 1\n  a: 2\ny: [1, 2\n"),
              "error: job.yaml:3:3: the key \"a\" again; it is already in line 2\n"
              "  expected: each key once in its map\n"
              "  fix:      remove one of the two\n"
              "error: job.yaml:5:1: a [ that is not closed\n"
              "  expected: values with commas, then ]\n"
              "  fix:      close the bracket, or write a comma between the values");
}

TEST(BadInputTest, EveryTabInTheIndentationIsNamed) {
    EXPECT_EQ(message_of("train:\n\tbatch: 4\n  \tlr: 1\n\t# a comment may\nok: 1\n"),
              "error: job.yaml:2:1: a tab in the indentation\n"
              "  expected: spaces\n"
              "  fix:      replace the tab with spaces\n"
              "error: job.yaml:3:3: a tab in the indentation\n"
              "  expected: spaces\n"
              "  fix:      replace the tab with spaces");
    EXPECT_EQ(message_of("a:\n\tword\n"),
              "error: job.yaml:2:1: a tab in the indentation\n"
              "  expected: spaces\n"
              "  fix:      replace the tab with spaces");
    EXPECT_EQ(message_of("{\n\ta: 1,\n\tb: [\n\t\t2]}\n"), "no error");  // brackets need no columns
}

TEST(BadInputTest, LongListsOfMistakesAreCut) {
    std::string text;
    for (int i = 0; i < 50; ++i) text += "a: 1\n";
    std::string said = message_of(text);
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 20 * 3);
    EXPECT_TRUE(said.ends_with("\nerror: job.yaml: and 29 more mistakes like these")) << said;
}

TEST(BadInputTest, SyntaxErrorsSayWhatToDo) {
    EXPECT_EQ(message_of("a: *none\n"),
              "error: job.yaml:1:4: an alias whose anchor is not defined above it: \"a: *none\"\n"
              "  expected: an anchor (&name) earlier in the file\n"
              "  fix:      define the anchor first, or quote a text that begins with *");
    EXPECT_EQ(message_of("a: 1\n  b: 2\n"),
              "error: job.yaml:2:4: a colon where no value can begin: \"b: 2\"\n"
              "  expected: one \"key: value\" in a line, in the column of its siblings\n"
              "  fix:      fix the indentation, or quote a text that contains \": \"");
    EXPECT_EQ(message_of("a: 'x\nb: 2\n"),
              "error: job.yaml:1:4: a quote that is never closed\n"
              "  expected: the same quote at the end\n"
              "  fix:      close the quote");
    EXPECT_EQ(
        message_of("a: \"\\d\"\n"),
        "error: job.yaml:1:7: an escape in double quotes that YAML does not have: \"a: \"\\d\"\"\n"
        "  expected: \\n, \\t, \\\\, \\\" and the like\n"
        "  fix:      write the text in single quotes, or each backslash twice");
    EXPECT_EQ(message_of("a: @x\n"),
              "error: job.yaml:1:4: a character that no value can begin with: \"a: @x\"\n"
              "  expected: a value, a key or a comment\n"
              "  fix:      write the value in quotes");
    EXPECT_EQ(message_of("a: 1\nb\n"),
              "error: job.yaml:2:1: a key without a colon: \"b\"\n"
              "  expected: key: value\n"
              "  fix:      add the colon, or remove the line");
    EXPECT_EQ(message_of("a:\n  - 1\n  b: 2\n"),
              "error: job.yaml:3:3: this line fits neither the map above it nor a new one: "
              "\"b: 2\"\n"
              "  expected: a key in the column of its siblings\n"
              "  fix:      move the line to the column of the keys around it");
}

TEST(BadInputTest, NotAMapAtTheTop) {
    EXPECT_EQ(message_of("- 1\n- 2\n"),
              "error: job.yaml:1:1: the file is a list\n"
              "  expected: key: value pairs at the top\n"
              "  fix:      put it under a key");
    EXPECT_EQ(message_of("just words\n"),
              "error: job.yaml:1:1: the file is a single value\n"
              "  expected: key: value pairs at the top\n"
              "  fix:      put it under a key");
    EXPECT_EQ(message_of("[1]", "job.json"),
              "error: job.json:1:1: the file is a list\n"
              "  expected: key: value pairs at the top\n"
              "  fix:      put it under a key");
}

TEST(BadInputTest, KeysAreWordsOrNumbers) {
    EXPECT_EQ(message_of("? [a, b]\n: 1\n? {c: 1}\n: 2\n~: 3\nx: &x 1\n*x : 4\n5: five\n"),
              "error: job.yaml:1:3: a key that is a list\n"
              "  expected: a word or a number as the key\n"
              "  fix:      write the key as a word, in quotes if necessary\n"
              "error: job.yaml:3:3: a key that is a map\n"
              "  expected: a word or a number as the key\n"
              "  fix:      write the key as a word, in quotes if necessary\n"
              "error: job.yaml:5:1: a key that is an empty value\n"
              "  expected: a word or a number as the key\n"
              "  fix:      write the key as a word, in quotes if necessary\n"
              "error: job.yaml:7:1: a key that is an alias\n"
              "  expected: a word or a number as the key\n"
              "  fix:      write the key as a word, in quotes if necessary");
}

TEST(BadInputTest, ABombOfAliasesCostsNothing) {
    std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 60; ++i) {
        text += fmt::format("a{0}: &a{0} [", i);
        for (int j = 0; j < 9; ++j) text += fmt::format("{}*a{}", j ? ", " : "", i - 1);
        text += "]\n";
    }
    Document document = Document::parse(text + "batch: 4\n", "job.yaml");
    EXPECT_EQ(document.root().members.size(), 61U);
    Edit edit{.path = {"batch"}, .value = "8", .reason = ""};
    EXPECT_EQ(apply_edits(document, std::span(&edit, 1)), text + "batch: 8\n");
}

TEST(BadInputTest, AMapThatMergesItselfEnds) {
    Document document =
        Document::parse("a: &a\n  <<: [*a, *a, *a]\n  x: 1\nb: {<<: *a}\n", "j.yaml");
    Edit edit{.path = {"b", "y"}, .value = "8", .reason = ""};
    EXPECT_EQ(apply_edits(document, std::span(&edit, 1)),
              "a: &a\n  <<: [*a, *a, *a]\n  x: 1\nb: {<<: *a, y: 8}\n");
}

std::string repeated(const std::string& text, std::size_t count) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) out += text;
    return out;
}

TEST(BadInputTest, DeepNestingIsRefused) {
    const char* kRest =
        ": lists and maps nested more than 100 deep\n"
        "  expected: a configuration with fewer levels\n"
        "  fix:      flatten it";
    EXPECT_EQ(message_of("a: " + repeated("[", 90'000) + repeated("]", 90'000)),
              std::string("error: job.yaml:1:103") + kRest);
    EXPECT_EQ(message_of(repeated("- ", 90'000)), std::string("error: job.yaml:1:201") + kRest);
    EXPECT_EQ(message_of("{\"a\":" + repeated("[", 90'000), "job.json"),
              std::string("error: job.json:1:106") + kRest);
    EXPECT_EQ(message_of("a" + repeated(".a", 90'000) + " = 1\n", "job.toml"),
              std::string("error: job.toml:1:202") + kRest);
    EXPECT_EQ(message_of("a: " + repeated("[", 90) + repeated("]", 90)), "no error");
    EXPECT_NE(message_of("a = " + repeated("[", 90'000), "job.toml"), "no error");
    EXPECT_NE(message_of("a = " + repeated("{a=", 90'000), "job.toml"), "no error");
}

TEST(BadInputTest, DataFilesAreRefused) {
    EXPECT_EQ(message_of("a: [" + repeated("1,", 1'000'000) + "1]\n"),
              "error: job.yaml:1:2000004: more than 500000 keys, values or lines\n"
              "  expected: a configuration, not a data file\n"
              "  fix:      keep long lists in separate files");
    EXPECT_EQ(message_of(repeated("#", (16 << 20) + 1)),
              "error: job.yaml: is larger than 16.0 MiB\n"
              "  expected: a configuration of at most 16.0 MiB");
}

TEST(BadInputTest, NotANumberIsATextHere) {
    Document document =
        Document::parse("a: nan\nb: .inf\nc: -1e999\nd: 99999999999999999999\n", "j.yaml");
    EXPECT_EQ(document.find({"a"})->text, "nan");
    EXPECT_EQ(document.find({"b"})->text, ".inf");
    EXPECT_EQ(document.find({"c"})->text, "-1e999");
    EXPECT_EQ(document.find({"d"})->text, "99999999999999999999");
}

}  // namespace
}  // namespace saturate
