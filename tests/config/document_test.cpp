// SPDX-License-Identifier: Apache-2.0
// Places and bytes of every value, and the whole text of every message about a bad file.
#include "config/document.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "config/message_of.h"

namespace saturate {
namespace {

// "12:3 <raw> text" of the value at a path.
std::string shown(const Document& document, const KeyPath& path) {
    const Node* node = document.find(path);
    if (node == nullptr) return "not there";
    std::string raw = document.text().substr(node->begin, node->end - node->begin);
    return fmt::format("{}:{} <{}> {}", node->place.line, node->place.column, raw, node->text);
}

TEST(DocumentTest, ValuesKnowTheirPlaceAndTheirBytes) {
    Document document = Document::parse(
        "# comment\n"
        "batch_size: 4   # small\n"
        "model:\n"
        "  name: \"res\\tnet\"\n"
        "  path: 'it''s'\n"
        "  depth: !!int 50\n"
        "  rate: &rate 3e-4\n"
        "  again: *rate\n"
        "  note: first line\n"
        "    second line # not part\n"
        "  script: |\n"
        "    one\n"
        "      two\n"
        "\n"
        "  # of the next key\n"
        "  list: [1, {a: 2}]\n",
        "job.yaml");
    EXPECT_EQ(shown(document, {"batch_size"}), "2:13 <4> 4");
    EXPECT_EQ(shown(document, {"model", "name"}), "4:9 <\"res\\tnet\"> res\tnet");
    EXPECT_EQ(shown(document, {"model", "path"}), "5:9 <'it''s'> it's");
    EXPECT_EQ(shown(document, {"model", "depth"}), "6:16 <50> 50");
    EXPECT_EQ(shown(document, {"model", "rate"}), "7:15 <3e-4> 3e-4");
    EXPECT_EQ(shown(document, {"model", "again"}), "8:10 <*rate> rate");
    EXPECT_EQ(shown(document, {"model", "note"}),
              "9:9 <first line\n    second line> first line second line");
    EXPECT_EQ(shown(document, {"model", "script"}), "11:11 <|\n    one\n      two> one\n  two\n");
    EXPECT_EQ(shown(document, {"model", "list"}), "16:9 <[1, {a: 2}]> ");
    EXPECT_TRUE(document.find({"model", "name"})->quoted);
    EXPECT_FALSE(document.find({"model", "rate"})->quoted);
    EXPECT_EQ(document.find({"model", "rate"})->anchor, "rate");
    EXPECT_EQ(document.resolve(*document.find({"model", "again"}))->text, "3e-4");
    EXPECT_EQ(document.find({"model", "nothing"}), nullptr);
    EXPECT_EQ(document.root().members[0].place, (Place{"job.yaml", 2, 1}));
}

TEST(DocumentTest, CountsCharactersAcrossByteOrderMarkReturnsAndChinese) {
    Document document = Document::parse(
        "\xEF\xBB\xBF"
        "名字: 训练\r\n"
        "数据: {批: 4, 路径: \"文\"}\r\n"
        "x: 1",
        "job.yaml");
    EXPECT_EQ(shown(document, {"名字"}), "1:5 <训练> 训练");
    EXPECT_EQ(shown(document, {"数据", "批"}), "2:9 <4> 4");
    EXPECT_EQ(shown(document, {"数据", "路径"}), "2:16 <\"文\"> 文");
    EXPECT_EQ(shown(document, {"x"}), "3:4 <1> 1");
}

TEST(DocumentTest, EmptyValuesStandBehindTheirColon) {
    Document document = Document::parse(
        "a:\n"
        "b: &x\n"
        "c: !!str\n"
        "\"\": 0\n"
        "d: ~\n"
        "e:\n"
        "null2: 1\n"
        "f: {g: , h: null}\n"
        "i:\n"
        "- 1\n"
        "-\n"
        "j: 2\n",
        "job.yaml");
    EXPECT_EQ(shown(document, {"a"}), "1:3 <> ");
    EXPECT_EQ(shown(document, {"b"}), "2:6 <> ");
    EXPECT_EQ(shown(document, {"c"}), "3:9 <> ");
    EXPECT_EQ(shown(document, {"d"}), "5:4 <~> ");
    EXPECT_EQ(shown(document, {"e"}), "6:3 <> ");
    EXPECT_EQ(shown(document, {"f", "g"}), "8:7 <> ");
    EXPECT_EQ(shown(document, {"f", "h"}), "8:13 <null> ");
    EXPECT_EQ(shown(document, {"i"}), "10:1 <- 1\n-> ");
    for (const char* key : {"a", "b", "c", "d", "e"})
        EXPECT_EQ(document.find({key})->kind, Node::Kind::null) << key;
}

TEST(DocumentTest, ReadsJsonStrictly) {
    Document document = Document::parse(
        "{\n\t\"train_batch_size\" : 32,\n\t\"bf16\": {\"enabled\": \"auto\"},\n"
        "\t\"name\": \"\\u8bad\\ud83d\\ude00\\n\"\n}\n",
        "ds.json");
    EXPECT_EQ(document.format(), Format::json);
    EXPECT_EQ(shown(document, {"train_batch_size"}), "2:23 <32> 32");
    EXPECT_EQ(shown(document, {"bf16", "enabled"}), "3:22 <\"auto\"> auto");
    EXPECT_EQ(document.find({"name"})->text, "训😀\n");
    EXPECT_EQ(message_of("{\"a\": 1, \"a\": 2}", "ds.json"),
              "error: ds.json:1:10: the key \"a\" again; it is already in line 1\n"
              "  expected: each key once in its map\n"
              "  fix:      remove one of the two");
    EXPECT_EQ(message_of("{\"a\": 1,\n}", "ds.json"),
              "error: ds.json:2:1: a comma before the closing bracket: \"}\"\n"
              "  expected: a value\n"
              "  fix:      remove the comma");
    EXPECT_EQ(message_of("{\"a\": bf16}", "ds.json"),
              "error: ds.json:1:7: a word without quotes: \"bf16}\"\n"
              "  expected: a number, true, false, null or a text in double quotes\n"
              "  fix:      \"bf16\"");
    EXPECT_EQ(message_of("{\"a\": 1 \"b\": 2}", "ds.json"),
              "error: ds.json:1:9: two values without a comma: \"\"b\": 2}\"\n"
              "  expected: a comma or }\n"
              "  fix:      write a comma between the values");
    EXPECT_EQ(message_of("{\"a\": 1", "ds.json"),
              "error: ds.json:1:8: the file ends too early\n"
              "  expected: a closing }\n"
              "  fix:      close it");
    EXPECT_EQ(message_of("// no\n{}", "ds.json"),
              "error: ds.json:1:1: a word without quotes: \"// no\"\n"
              "  expected: a number, true, false, null or a text in double quotes\n"
              "  fix:      \"//\"");
}

TEST(DocumentTest, ReadsToml) {
    Document document = Document::parse(
        "title = \"训练\" # x\n"
        "[training]\n"
        "steps = 1_000\n"
        "\"批\".size = 8\n"
        "compile = {enable = true}\n"
        "[a.b]\n"
        "c = 1979-05-27 07:32:00\n",
        "job.toml");
    EXPECT_EQ(document.format(), Format::toml);
    EXPECT_EQ(shown(document, {"title"}), "1:9 <\"训练\"> 训练");
    EXPECT_EQ(shown(document, {"training", "steps"}), "3:9 <1_000> 1_000");
    EXPECT_EQ(shown(document, {"training", "批", "size"}), "4:12 <8> 8");
    EXPECT_EQ(shown(document, {"training", "compile", "enable"}), "5:21 <true> true");
    EXPECT_EQ(shown(document, {"a", "b", "c"}), "7:5 <1979-05-27 07:32:00> 1979-05-27 07:32:00");
    EXPECT_EQ(document.root().find("training")->members[0].key, "steps");  // as in the file
    EXPECT_EQ(message_of("a = 1\na = 2\n", "job.toml"),
              "error: job.toml:2:5: a key or table that already exists: \"a = 2\"\n"
              "  expected: each key once in its table\n"
              "  fix:      remove one of the two");
    EXPECT_EQ(message_of("a = bf16\n", "job.toml"),
              "error: job.toml:1:5: not a valid TOML value: \"a = bf16\"\n"
              "  expected: a number, true, false, or a text in quotes\n"
              "  fix:      write the word in quotes");
    EXPECT_EQ(message_of("[a\nb = 1\n", "job.toml"),
              "error: job.toml:1:3: is not TOML: \"[a\"\n"
              "  expected: key = value lines under [table] headers\n"
              "  fix:      check this line and the one before it");
    EXPECT_EQ(message_of("a = [1,\n", "job.toml"),
              "error: job.toml:2:1: the file ends inside a value\n"
              "  expected: the closing quote or bracket\n"
              "  fix:      close it");
    EXPECT_EQ(message_of("a =\n", "job.toml"),
              "error: job.toml:1:4: a key without a value: \"a =\"\n"
              "  expected: key = value\n"
              "  fix:      add the value");
}

}  // namespace
}  // namespace saturate
