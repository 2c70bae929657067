// SPDX-License-Identifier: Apache-2.0
// Edits of Python text: what a person would have written, and every other byte as it was.
#include "project/source_edit.h"

#include <gtest/gtest.h>

#include "project/unified_diff.h"

namespace saturate {
namespace {

using Kind = SourceEdit::Kind;

ByteSpan of(const std::string& text, const std::string& part) {
    std::size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    return {at, at + part.size()};
}

std::string edited(const std::string& text, const std::vector<SourceEdit>& edits) {
    EditedSource done = apply_source_edits(text, edits);
    return done.problem.empty() ? done.text : "refused: " + done.problem;
}

std::string with_keyword(const std::string& call, const std::string& name,
                         const std::string& value) {
    return edited(call, {{Kind::keyword, {0, call.size()}, name, value}});
}

TEST(SourceEditTest, AddsAKeywordWhereTheCallEnds) {
    EXPECT_EQ(with_keyword("f()", "a", "1"), "f(a=1)");
    EXPECT_EQ(with_keyword("f( )", "a", "1"), "f(a=1 )");
    EXPECT_EQ(with_keyword("f(x)", "a", "1"), "f(x, a=1)");
    EXPECT_EQ(with_keyword("f(x,)", "a", "1"), "f(x, a=1,)");
    EXPECT_EQ(with_keyword("f((x))", "a", "1"), "f((x), a=1)");
    EXPECT_EQ(with_keyword("g(1)(x)", "a", "1"), "g(1)(x, a=1)");
    EXPECT_EQ(with_keyword("f(x, key=lambda p, q: p)", "a", "1"), "f(x, key=lambda p, q: p, a=1)");
    EXPECT_EQ(with_keyword("f(x for x in y)", "a", "1"), "f((x for x in y), a=1)");
    EXPECT_EQ(with_keyword("f(x, **more)", "a", "1"), "f(x, **more, a=1)");
    EXPECT_EQ(with_keyword("f(')', \"a, # b\")", "a", "1"), "f(')', \"a, # b\", a=1)");
}

TEST(SourceEditTest, ReplacesTheValueOfAKeyword) {
    EXPECT_EQ(with_keyword("f(x, a = 0 , b=2)", "a", "8"), "f(x, a = 8 , b=2)");
    EXPECT_EQ(with_keyword("f(a=g(a=1), b=2)", "a", "8"), "f(a=8, b=2)");
    EXPECT_EQ(with_keyword("f(x == 1, b=2)", "b", "3"), "f(x == 1, b=3)");
}

TEST(SourceEditTest, NeverWritesIntoAComment) {
    EXPECT_EQ(with_keyword("f(x,\n  y=1  # the last\n)", "a", "1"),
              "f(x,\n  y=1,  # the last\n  a=1\n)");
    EXPECT_EQ(with_keyword("f(x,\n  y=1,  # the last, really\n  # )\n)", "a", "1"),
              "f(x,\n  y=1,  # the last, really\n  a=1,\n  # )\n)");
    EXPECT_EQ(with_keyword("f(x # why\n)", "a", "1"), "f(x, a=1 # why\n)");
}

TEST(SourceEditTest, KeepsLineEndsAndTabs) {
    EXPECT_EQ(with_keyword("f(\r\n\tx,\r\n\ty=1,\r\n)", "a", "1"),
              "f(\r\n\tx,\r\n\ty=1,\r\n\ta=1,\r\n)");
    std::string text = "if x:\r\n\tstep()\r\n";
    EXPECT_EQ(edited(text, {{Kind::after, of(text, "step()"), "", "a = 1\nif a:\n\tb()"}}),
              "if x:\r\n\tstep()\r\n\ta = 1\r\n\tif a:\r\n\t\tb()\r\n");
}

TEST(SourceEditTest, SeveralKeywordsOfOneCallStandInOrder) {
    std::string text = "d = f(\n    x,\n    n=0\n)\n";
    ByteSpan call = of(text, "f(\n    x,\n    n=0\n)");
    EXPECT_EQ(edited(text, {{Kind::keyword, call, "n", "8"},
                            {Kind::keyword, call, "p", "True"},
                            {Kind::keyword, call, "q", "True"}}),
              "d = f(\n    x,\n    n=8,\n    p=True,\n    q=True\n)\n");
}

TEST(SourceEditTest, WrapsStatementsButNotTheInsideOfStrings) {
    std::string text =
        "for x in y:\n"
        "  out = net(x)  # forward\n"
        "\n"
        "  note = '''a\n"
        "b'''\n"
        "  loss = f(out,\n"
        "           x)\n"
        "  loss.backward()\n";
    ByteSpan span{of(text, "out = net").begin, of(text, "           x)").end};
    EXPECT_EQ(edited(text, {{Kind::wrap, span, "", "with autocast():"},
                            {Kind::keyword, of(text, "net(x)"), "k", "1"}}),
              "for x in y:\n"
              "  with autocast():\n"
              "    out = net(x, k=1)  # forward\n"
              "\n"
              "    note = '''a\n"
              "b'''\n"
              "    loss = f(out,\n"
              "             x)\n"
              "  loss.backward()\n");
}

TEST(SourceEditTest, ABlockInsideAnotherIsIndentedTwice) {
    std::string text =
        "for x in y:\n"
        "  loss = net(x)\n"
        "  show(loss.item())\n"
        "  loss = loss / 2\n";
    ByteSpan span{of(text, "loss = net").begin, of(text, "loss / 2").end};
    EXPECT_EQ(edited(text, {{Kind::wrap, span, "", "with autocast():"},
                            {Kind::wrap, of(text, "show(loss.item())"), "", "if i % 50 == 0:"}}),
              "for x in y:\n"
              "  with autocast():\n"
              "    loss = net(x)\n"
              "    if i % 50 == 0:\n"
              "      show(loss.item())\n"
              "    loss = loss / 2\n");
}

TEST(SourceEditTest, PutsACallAroundAnotherThatIsChangedToo) {
    std::string text = "d = make(f(\n    x,  # rows\n    n=0))\n";
    ByteSpan call = of(text, "f(\n    x,  # rows\n    n=0)");
    EXPECT_EQ(edited(text, {{Kind::around, call, "", "a.Loader.like({})"},
                            {Kind::keyword, call, "n", "8"},
                            {Kind::keyword, call, "p", "True"}}),
              "d = make(a.Loader.like(f(\n    x,  # rows\n    n=8, p=True)))\n");
    EXPECT_EQ(edited(text, {{Kind::around, call, "", "like"}}),
              "refused: the text has no place for the expression");
}

TEST(SourceEditTest, AFileThatEndsWithoutANewlineGetsNone) {
    EXPECT_EQ(edited("a = 1", {{Kind::after, {0, 5}, "", "b = 2"}}), "a = 1\nb = 2");
}

TEST(SourceEditTest, RefusesLinesOfTwoStatementsAndChangesThatMeet) {
    std::string text = "a = f(1); b = 2\n";
    EXPECT_EQ(edited(text, {{Kind::after, of(text, "a = f(1)"), "", "c = 3"}}),
              "refused: there is another statement on the same line");
    EXPECT_EQ(edited(text, {{Kind::expression, of(text, "f(1)"), "", "g()"},
                            {Kind::expression, of(text, "1"), "", "2"}}),
              "refused: two changes affect the same place");
    EXPECT_EQ(edited(text, {{Kind::expression, {10, 99}, "", "2"}}),
              "refused: the place is outside the file");
    EXPECT_EQ(edited(text, {{Kind::keyword, of(text, "a ="), "k", "1"}}),
              "refused: the call's parentheses cannot be found");
}

TEST(UnifiedDiffTest, ShowsThreeLinesAroundAChange) {
    EXPECT_EQ(unified_diff("x.py", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n"),
              "--- a/x.py\n+++ b/x.py\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
    EXPECT_EQ(unified_diff("x y", "", "a\n"), "--- a/x y\t\n+++ b/x y\t\n@@ -0,0 +1,1 @@\n+a\n");
    EXPECT_EQ(unified_diff("x", "a", "b"),
              "--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n"
              "\\ No newline at end of file\n");
    EXPECT_EQ(unified_diff("x", "a\n", "a\n"), "");
}

}  // namespace
}  // namespace saturate
