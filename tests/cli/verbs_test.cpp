// SPDX-License-Identifier: Apache-2.0
// The command line as a whole: verbs, help, completion and exit codes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;

Ran saturate_with(std::vector<std::string> words, const RunWhere& where = {}) {
    words.insert(words.begin(), SATURATE_BINARY);
    return run(words, where);
}

// As the help lists them: lines that are indented by two and go on with a word.
std::vector<std::string> verbs_in(std::string_view help) {
    std::vector<std::string> names;
    for (std::string_view line : split(help, '\n')) {
        if (line.size() < 4 || !line.starts_with("  ") || line[2] == ' ') continue;
        names.emplace_back(split(trim(line), ' ')[0]);
    }
    return names;
}

std::vector<std::string> all_verbs() { return verbs_in(saturate_with({"--help"}).out); }

TEST(VerbsTest, AMistypedVerbIsSuggested) {
    Ran ran = saturate_with({"trian"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.out, "");
    std::vector<std::string_view> lines = split(ran.err, '\n');
    ASSERT_EQ(lines.size(), 4u) << ran.err;
    EXPECT_EQ(lines[0], "error: unknown verb \"trian\"");
    EXPECT_TRUE(lines[1].starts_with("  expected: ")) << lines[1];
    std::vector<std::string> expected;
    for (std::string_view name : split(lines[1].substr(12), ',')) expected.emplace_back(trim(name));
    EXPECT_THAT(expected, testing::UnorderedElementsAreArray(all_verbs()));
    EXPECT_EQ(lines[2], "  fix:      did you mean saturate train?");
}

TEST(VerbsTest, AWordLikeNoVerbGetsNoSuggestion) {
    Ran ran = saturate_with({"xylophone"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_THAT(ran.err, testing::StartsWith("error: unknown verb \"xylophone\"\n  expected: "));
    EXPECT_THAT(ran.err, testing::Not(HasSubstr("fix:")));
    EXPECT_EQ(saturate_with({""}).status, 2);
    EXPECT_EQ(saturate_with({"--verbose"}).status, 2);
    EXPECT_THAT(saturate_with({"\033[2J"}).err,
                testing::StartsWith("error: unknown verb \"\\x1b[2J\"\n"));
}

TEST(VerbsTest, ACommandInPlaceOfAVerbIsOneForFix) {
    EXPECT_THAT(saturate_with({"python", "train.py", "--lr", "1"}).err,
                testing::EndsWith("  fix:      saturate fix -- python train.py --lr 1\n"));
    EXPECT_THAT(saturate_with({"train.py"}).err,
                testing::EndsWith("  fix:      saturate fix -- python train.py\n"));
}

TEST(VerbsTest, TheValueOfAMistypedOptionIsNoMistakeOfItsOwn) {
    Ran ran = saturate_with({"monitor", "--intervall", "2"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_THAT(ran.err, testing::StartsWith("error: monitor has no option \"--intervall\"\n"));
    EXPECT_THAT(ran.err, testing::EndsWith("  fix:      did you mean --interval?\n"));
}

TEST(VerbsTest, WithoutArgumentsTheHelpIsShownAndNothingWasDone) {
    Ran ran = saturate_with({});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.out, saturate_with({"--help"}).out);
    EXPECT_EQ(ran.err, "");
}

TEST(VerbsTest, HelpListsTheVerbs) {
    for (const char* word : {"--help", "-h", "help"}) {
        Ran ran = saturate_with({word});
        EXPECT_EQ(ran.status, 0) << word;
        EXPECT_EQ(ran.err, "") << word;
        EXPECT_THAT(verbs_in(ran.out), testing::Contains("doctor")) << word;
    }
}

TEST(VerbsTest, HelpOfAVerbComesBothWays) {
    EXPECT_EQ(saturate_with({"help", "run"}).out, saturate_with({"run", "--help"}).out);
    Ran unknown = saturate_with({"help", "rnu"});
    EXPECT_EQ(unknown.status, 2);
    EXPECT_THAT(unknown.err, HasSubstr("did you mean saturate run?"));
}

TEST(VerbsTest, VersionIsOneLine) {
    for (const char* word : {"--version", "-V", "-v", "version"}) {
        Ran ran = saturate_with({word});
        EXPECT_EQ(ran.status, 0) << word;
        EXPECT_THAT(ran.out, testing::MatchesRegex("saturate [0-9]+\\.[0-9]+\\.[0-9]+\n")) << word;
    }
}

TEST(VerbsTest, EveryVerbHasHelp) {
    std::vector<std::string> names = all_verbs();
    ASSERT_GT(names.size(), 5u);
    for (const std::string& name : names) {
        Ran ran = saturate_with({name, "--help"});
        EXPECT_EQ(ran.status, 0) << name;
        EXPECT_EQ(ran.err, "") << name;
        EXPECT_THAT(ran.out, testing::StartsWith(fmt::format("saturate {}: ", name)));
        EXPECT_THAT(ran.out, HasSubstr(fmt::format("\nUsage: saturate {}", name)));
        EXPECT_EQ(saturate_with({name, "-h"}).out, ran.out);
    }
}

TEST(VerbsTest, SpeaksChineseByOptionAndByLocale) {
    Ran ran = saturate_with({"doctor", "--jsn", "--lang", "zh"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "错误：doctor 没有选项 \"--jsn\"\n"
              "  应为：    --help, --data, --json, --lang\n"
              "  修复：    是不是想用 --json？\n");
    RunWhere chinese{.environment = {{"LC_ALL", "zh_CN.UTF-8"}}};
    EXPECT_THAT(saturate_with({"--help"}, chinese).out, HasSubstr("监控 GPU，最后给出结论"));
    EXPECT_THAT(saturate_with({"doctor", "--lang", "en"}, chinese).out, HasSubstr("\nMissing\n"));
    // What we start speaks the same language: the pages of --serve, the engine, fix in demo.
    RunWhere variable{.environment = {{"SATURATE_LANG", "zh"}}};
    EXPECT_THAT(saturate_with({"--help"}, variable).out, HasSubstr("监控 GPU，最后给出结论"));
    EXPECT_THAT(saturate_with({"doctor", "--lang", "en"}, variable).out, HasSubstr("\nMissing\n"));
    TemporaryFolder folder;
    EXPECT_EQ(
        saturate_with({"run", "--lang", "zh", "--", "printenv", "SATURATE_LANG"}, {folder.path()})
            .out,
        "zh\n");
    // Before the verb, too.
    for (std::vector<std::string> before :
         {std::vector<std::string>{"--lang", "zh"}, {"--lang=zh"}}) {
        before.insert(before.end(), {"doctor", "--help"});
        EXPECT_EQ(saturate_with(before).out,
                  saturate_with({"doctor", "--help", "--lang", "zh"}).out);
    }
}

TEST(VerbsTest, BeforeWhatIsNoVerbTheLanguageIsNotTakenForOne) {
    EXPECT_EQ(saturate_with({"--lang", "zh"}).out, saturate_with({"--lang=zh", "--help"}).out);
    EXPECT_THAT(saturate_with({"--lang", "zh"}).out, HasSubstr("用法"));
    EXPECT_EQ(saturate_with({"--lang", "zh", "help", "run"}).out,
              saturate_with({"run", "--help", "--lang", "zh"}).out);
    EXPECT_EQ(saturate_with({"--lang", "en", "version"}).out, saturate_with({"version"}).out);
    EXPECT_THAT(saturate_with({"--lang", "zh", "python", "train.py"}).err,
                testing::EndsWith("saturate fix -- python train.py\n"));
}

TEST(VerbsTest, AScriptWithoutItsPythonIsGivenOne) {
    EXPECT_THAT(saturate_with({"fix", "--dry-run", "train.py", "--epochs", "5"}).err,
                HasSubstr("put -- before the command: saturate fix --dry-run -- python train.py "
                          "--epochs 5\n"));
}

TEST(VerbsTest, VerbsAreListedAsTheyAreTypedInEveryLanguage) {
    EXPECT_EQ(verbs_in(saturate_with({"--help", "--lang", "zh"}).out), all_verbs());
}

TEST(VerbsTest, WhatProgramsReadIsTheSameInEveryLanguage) {
    std::vector<std::string> words{"diagnose", "--json",
                                   SATURATE_SOURCE_DIR
                                   "/tests/golden/diagnosis/loader_bound/trace.json"};
    EXPECT_EQ(saturate_with(words, {.environment = {{"LC_ALL", "zh_CN.UTF-8"}}}).out,
              saturate_with(words).out);
}

TEST(VerbsTest, NoHelpHasEnglishLeftInChinese) {
    for (const std::string& name : all_verbs()) {
        Ran ran = saturate_with({name, "--help", "--lang", "zh"});
        for (std::string_view line : split(ran.out, '\n')) {
            std::string_view said = trim(line);
            bool is_command = said.starts_with("saturate ") || said.starts_with("用法") ||
                              said.starts_with("bash:") || said.starts_with("zsh:") ||
                              said.starts_with("source ");
            bool is_chinese = said.find_first_of("\xE4\xE5\xE6\xE7\xE8\xE9") != said.npos;
            EXPECT_TRUE(said.empty() || is_command || is_chinese) << name << ": " << line;
        }
    }
}

TEST(VerbsTest, EveryVerbRefusesUnknownOptions) {
    for (const std::string& name : all_verbs()) {
        Ran ran = saturate_with({name, "--no-such-option"});
        EXPECT_EQ(ran.status, 2) << name;
        EXPECT_EQ(ran.out, "") << name;
        EXPECT_THAT(ran.err, testing::StartsWith(fmt::format(
                                 "error: {} has no option \"--no-such-option\"\n", name)));
    }
}

TEST(VerbsTest, CompletionNeedsAShellThatItKnows) {
    Ran ran = saturate_with({"completion"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: no shell is named\n  expected: one of bash, zsh\n  fix:      saturate "
              "completion bash\n");
    ran = saturate_with({"completion", "fish"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: shell \"fish\"\n  expected: one of bash, zsh\n  fix:      saturate "
              "completion bash\n");
}

// What bash offers after these words; the last is the one being typed.
std::vector<std::string> completed(const std::vector<std::string>& words,
                                   const RunWhere& where = {}) {
    std::string script =
        "source <(\"$0\" completion bash) || exit 9\n"
        "COMP_WORDS=(saturate \"$@\"); COMP_CWORD=$#\n_saturate\nprintf '%s\\n' "
        "\"${COMPREPLY[@]}\"\n";
    std::vector<std::string> command{"bash", "-c", script, SATURATE_BINARY};
    command.insert(command.end(), words.begin(), words.end());
    Ran ran = run(command, where);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_EQ(ran.err, "");
    std::vector<std::string> lines;
    for (std::string_view line : split(trim(ran.out), '\n')) lines.emplace_back(line);
    return lines;
}

TEST(VerbsTest, BashCompletesVerbsOptionsChoicesAndFiles) {
    using testing::ElementsAre;
    EXPECT_THAT(completed({"do"}), ElementsAre("doctor"));
    EXPECT_THAT(completed({""}), testing::IsSupersetOf(all_verbs()));
    EXPECT_THAT(completed({"--ver"}), ElementsAre("--version"));
    EXPECT_THAT(completed({"doctor", "--"}), ElementsAre("--help", "--data", "--json", "--lang"));
    EXPECT_THAT(completed({"completion", "z"}), ElementsAre("zsh"));
    EXPECT_THAT(completed({"optimize", "--level", "nu"}), ElementsAre("numerics"));
    TemporaryFolder folder;
    folder.file("images/a", "");
    EXPECT_THAT(completed({"doctor", "--data", "im"}, {.folder = folder.path()}),
                ElementsAre("images"));
}

TEST(VerbsTest, ZshAcceptsItsScript) {
    Ran script = saturate_with({"completion", "zsh"});
    EXPECT_EQ(script.status, 0);
    EXPECT_THAT(script.out, testing::StartsWith("#compdef saturate\n"));
    for (const std::string& name : all_verbs())
        EXPECT_THAT(script.out, HasSubstr("'" + name + ":"));
    if (run({"bash", "-c", "command -v zsh"}).status != 0) GTEST_SKIP() << "no zsh here";
    Ran checked = run({"zsh", "-n", "/dev/stdin"}, {.input = script.out});
    EXPECT_EQ(checked.status, 0) << checked.err;
    EXPECT_EQ(checked.err, "");
}

TEST(VerbsTest, OutputThatCannotBeWrittenIsTheMachines) {
    if (run({"test", "-w", "/dev/full"}).status != 0) GTEST_SKIP() << "no /dev/full here";
    Ran ran = run({"bash", "-c", "\"$0\" --help > /dev/full", SATURATE_BINARY});
    EXPECT_EQ(ran.status, 3);
    EXPECT_EQ(ran.err,
              "error: cannot write to standard output\n  expected: free space on the disk\n");
}

TEST(VerbsTest, WhatTrainsNeedsABuildWithLibTorch) {
#ifdef SATURATE_HAS_ENGINE
    TemporaryFolder folder;
    std::string file = folder.path() / "s.json";
    Ran ran = saturate_with({"selftest", "-o", file});
    EXPECT_EQ(ran.status, 0) << ran.out;
    EXPECT_THAT(ran.out, testing::EndsWith("34 of 34 checks passed on cpu\n"));
    Json report = Json::parse(read_file(file, 1 << 20, "a report"), file);
    EXPECT_EQ(report["checks_passed"].integer(), 34);
    EXPECT_TRUE(report["versions"]["torch"].string());
    EXPECT_TRUE(report["running"].is_null());
    EXPECT_EQ(saturate_with({"selftest", "-o", file}).status, 2);  // it is there
    // A check that takes the process with it is named.
    file = folder.path() / "killed.json";
    (void)run({"bash", "-c",
               "\"$0\" selftest -o \"$1\" & until [ -e \"$1\" ]; do :; done; kill -9 $!",
               SATURATE_BINARY, file});
    report = Json::parse(read_file(file, 1 << 20, "a report"), file);
    EXPECT_TRUE(report["running"].string());
    EXPECT_EQ(report["passed"].boolean(), false);
#else
    Ran ran = saturate_with({"selftest"});
    EXPECT_EQ(ran.status, 3);
    EXPECT_EQ(ran.err,
              "error: selftest needs LibTorch, which this build does not include\n"
              "  expected: a build with LibTorch\n"
              "  fix:      in a checkout, ./saturate builds one; with the wheel, also pip install "
              "the wheel saturate-gpu-engine (docs/install.md)\n");
#endif
}

}  // namespace
}  // namespace saturate
