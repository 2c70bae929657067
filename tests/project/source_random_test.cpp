// SPDX-License-Identifier: Apache-2.0
// Random edits of the Python sources of this tree, in several styles, from a fixed seed: what the
// editor makes is proven by the interpreter, and what it cannot make it refuses. The proof itself
// is tried on files that were changed further.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/file.h"
#include "project/project_reader.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;
using Kind = SourceEdit::Kind;

struct Sample {
    std::string name, text;
    std::vector<ByteSpan> calls, expressions, statements;
};

std::vector<ByteSpan> spans(const Json& json) {
    std::vector<ByteSpan> out;
    for (const Json& item : json.items())
        out.push_back({static_cast<std::size_t>(*item.items()[0].integer()),
                       static_cast<std::size_t>(*item.items()[1].integer())});
    return out;
}

const std::vector<Sample>& samples() {
    static const std::vector<Sample> kSamples = [] {
        TemporaryFolder folder;
        fs::path root = SATURATE_SOURCE_DIR;
        std::vector<std::string> command = {"python3", (root / "tests/project/spans.py").string(),
                                            folder.path().string()};
        for (const char* part : {"python/_saturate_shim", "tests/python/scripts", "tests/support"})
            for (const fs::directory_entry& entry : fs::directory_iterator(root / part))
                if (entry.path().extension() == ".py") command.push_back(entry.path());
        std::sort(command.begin() + 3, command.end());
        Ran ran = run(command);
        EXPECT_EQ(ran.status, 0) << ran.err;
        std::vector<Sample> out;
        Json all = Json::parse(ran.out, "spans.py");
        for (const Json& one : all.items()) {
            std::string file = *one["file"].string();
            out.push_back({file, read_file(file, 1 << 24, "a sample"), spans(one["calls"]),
                           spans(one["expressions"]), spans(one["statements"])});
        }
        return out;
    }();
    return kSamples;
}

class Chooser {
  public:
    explicit Chooser(unsigned seed) : random_(seed) {}
    std::size_t below(std::size_t limit) { return random_() % limit; }
    template <typename T>
    const T& of(const std::vector<T>& all) {
        return all[below(all.size())];
    }
    SourceEdit edit(const Sample& sample) {
        static const std::vector<std::string> kValues = {"True", "8", "'bf16'", "torch.f(x, y=1)",
                                                         "not (a and b)"};
        static const std::vector<std::string> kLines = {"a = 1", "if a:\n\tb()\nc = [1,\n\t2]",
                                                        "import torch"};
        static const std::vector<std::string> kBlocks = {
            "with torch.autocast('cuda'):", "if step % 50 == 0:", "while False:"};
        switch (below(6)) {
            case 0:
                return {Kind::keyword, of(sample.calls), fmt::format("new_{}", below(3)),
                        of(kValues)};
            case 1:
                return {Kind::expression, of(sample.expressions), "", of(kValues)};
            case 2:
                return {Kind::before, of(sample.statements), "", of(kLines)};
            case 3:
                return {Kind::around, of(sample.calls), "", "own.Loader.like({})"};
            case 4:
                return {Kind::after, of(sample.statements), "", of(kLines)};
            default:
                return {Kind::wrap, of(sample.statements), "", of(kBlocks)};
        }
    }

  private:
    std::mt19937 random_;
};

TEST(SourceRandomTest, WhatTheEditorMakesTheInterpreterProves) {
    Chooser chooser(20);
    std::vector<ProjectReader::Check> checks;
    std::vector<std::string> names;
    std::map<std::string, int> refused;
    for (int i = 0; i < 240; ++i) {
        const Sample& sample = chooser.of(samples());
        std::vector<SourceEdit> edits = {chooser.edit(sample)};
        EditedSource done = apply_source_edits(sample.text, edits);
        if (!done.problem.empty()) {
            ++refused[done.problem];
            continue;
        }
        checks.push_back({sample.text, edits, done.text, ""});
        names.push_back(fmt::format("{}: {}", sample.name, to_json(edits[0]).line()));
    }
    ProjectReader reader({.command = {"python3"}});
    std::vector<std::string> answers = reader.verify(checks);
    for (std::size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(answers[i], "") << names[i];
    EXPECT_GT(checks.size(), 200u);
    for (const auto& [why, count] : refused)
        EXPECT_TRUE(why == "there is another statement on the same line" ||
                    why == "an elif belongs to its if")
            << why << " " << count;
}

TEST(SourceRandomTest, SeveralEditsAtOnceAreProvenOrRefused) {
    Chooser chooser(21);
    std::vector<ProjectReader::Check> checks;
    for (int i = 0; i < 100; ++i) {
        const Sample& sample = chooser.of(samples());
        std::vector<SourceEdit> edits;
        for (int n = 0; n < 3; ++n) edits.push_back(chooser.edit(sample));
        EditedSource done = apply_source_edits(sample.text, edits);
        if (done.problem.empty()) checks.push_back({sample.text, edits, done.text, ""});
    }
    ProjectReader reader({.command = {"python3"}});
    std::vector<std::string> answers = reader.verify(checks);
    std::size_t proven = 0;
    // Changes that lie in one another need not fit; that is for the proof to say, never to pass.
    for (std::size_t i = 0; i < answers.size(); ++i) proven += answers[i].empty();
    EXPECT_GT(proven, checks.size() * 8 / 10);
}

TEST(SourceRandomTest, AChangeThatNobodyNamedIsSeen) {
    Chooser chooser(22);
    std::vector<ProjectReader::Check> checks;
    for (int i = 0; i < 60; ++i) {
        const Sample& sample = chooser.of(samples());
        if (sample.expressions.empty()) continue;
        std::vector<SourceEdit> edits = {chooser.edit(sample)};
        std::vector<SourceEdit> more = edits;
        more.push_back({Kind::expression, chooser.of(sample.expressions), "", "unasked_for"});
        EditedSource done = apply_source_edits(sample.text, more);
        if (done.problem.empty()) checks.push_back({sample.text, edits, done.text, ""});
    }
    ASSERT_GT(checks.size(), 30u);
    ProjectReader reader({.command = {"python3"}});
    for (const std::string& answer : reader.verify(checks)) EXPECT_NE(answer, "");
}

TEST(SourceRandomTest, AFileThatChangedSinceItWasReadIsRefused) {
    ProjectReader reader({.command = {"python3"}});
    std::vector<SourceEdit> edits = {{Kind::expression, {4, 5}, "", "2"}};
    std::vector<ProjectReader::Check> checks = {
        {"a = 1\n", edits, "a = 2\n", std::string(64, '0')}};
    EXPECT_EQ(reader.verify(checks)[0], "the file has changed since it was read");
    checks[0].sha256.clear();
    EXPECT_EQ(reader.verify(checks)[0], "");
}

}  // namespace
}  // namespace saturate
