// SPDX-License-Identifier: Apache-2.0
#include "words/words.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "words/clauses.h"
#include "words/pattern.h"
#include "words/terminal.h"

namespace saturate {
namespace {

using testing::ElementsAre;
using testing::Optional;

std::string zh(std::string_view english) { return translated(english, Language::chinese); }

TEST(PatternTest, FindsWhatStandsInTheHoles) {
    Pattern pattern("{} samples in {:.1f} s, {} worker{}", "");
    EXPECT_THAT(pattern.match("12 samples in 3.5 s, 4 workers"),
                Optional(ElementsAre("12", "3.5", "4", "s")));
    EXPECT_THAT(pattern.match("12 samples in 3.5 s, 1 worker"),
                Optional(ElementsAre("12", "3.5", "1", "")));
    // A hole for a number holds no words; a hole is not empty but for the s of a plural.
    EXPECT_FALSE(pattern.match("12 samples in some s, 4 workers"));
    EXPECT_FALSE(pattern.match(" samples in 3.5 s, 4 workers"));
    EXPECT_FALSE(pattern.match("12 samples in 3.5 s, 4 workers more"));
}

TEST(PatternTest, TriesALaterPlaceWhereTheFirstDoesNotFit) {
    Pattern pattern("{}: {:.2f} times", "");
    EXPECT_THAT(pattern.match("a: b: 1.25 times"), Optional(ElementsAre("a: b", "1.25")));
}

TEST(PatternTest, BracesThatAreWrittenTwiceAreBraces) {
    Pattern pattern("{{{}}} has no value", "");
    EXPECT_THAT(pattern.match("{batch} has no value"), Optional(ElementsAre("batch")));
}

TEST(WordsTest, TheLanguageComesFromTheOptionAndElseTheLocale) {
    EXPECT_EQ(language_of("", "zh_CN.UTF-8"), Language::chinese);
    EXPECT_EQ(language_of("en", "zh_CN.UTF-8"), Language::english);
    EXPECT_EQ(language_of("zh", "C"), Language::chinese);
    EXPECT_EQ(language_of("", ""), Language::english);
}

TEST(WordsTest, EnglishStaysAsItIs) {
    EXPECT_EQ(translated("error: unknown verb \"x\"\n", Language::english),
              "error: unknown verb \"x\"\n");
}

TEST(WordsTest, NumbersAndNamesStayInTheirPlaces) {
    EXPECT_EQ(zh("--epochs is given twice"), "--epochs 给了两次");
    EXPECT_EQ(zh("a whole number from 1 to 32"), "1 到 32 之间的整数");
    // Chinese has another order.
    EXPECT_EQ(zh("biggest cause: waiting for data, 60 % of the recorded time"),
              "最大的原因：等待数据，占录制时间的 60 %");
}

TEST(WordsTest, AnErrorKeepsItsPlaceAndItsShape) {
    EXPECT_EQ(zh("error: job.yaml:14: no GPU \"X\" in the table\n"
                 "  expected: a whole number from 1 to 4\n"
                 "  fix:      did you mean --gpu?\n"),
              "错误：job.yaml:14: 表中没有 GPU \"X\"\n"
              "  应为：    1 到 4 之间的整数\n"
              "  修复：    是不是想用 --gpu？\n");
}

// A sentence with a hole at its start must not take the label for what stands in the hole.
TEST(WordsTest, TheLabelOfALineOfAnErrorIsNoPartOfItsSentence) {
    EXPECT_EQ(zh("error: --budget is 2 s\n"
                 "  expected: a configuration that exists and is readable\n"
                 "  fix:      --budget 5m\n"),
              "错误：--budget 是 2 秒\n"
              "  应为：    存在且可读的一份配置\n"
              "  修复：    --budget 5m\n");
}

// Of two sentences that fit, the one that leaves nothing English.
TEST(WordsTest, ALabelBeforeASentenceWithAHoleAtItsStartIsTranslatedToo) {
    std::string also =
        zh("       also: F02 loader runs in the training process: _SingleLoader: one batch "
           "takes 0.6 ms, the rest of a step 0.4 ms; 2 workers keep up\n");
    EXPECT_TRUE(also.starts_with("       另外：F02 ")) << also;
    EXPECT_EQ(zh("       also: F02 loader runs in the training process: "
                 "_SingleProcessDataLoaderIter: one batch takes 0.6 ms, the rest of the step 0.4 "
                 "ms; 2 workers keep up\n"),
              "       另外：F02 在训练进程内加载数据：_SingleProcessDataLoaderIter：一批要 0.6 "
              "毫秒，一步的其余部分 0.4 毫秒；2 个 worker 就跟得上\n");
    EXPECT_EQ(also.find("loader runs"), std::string::npos) << also;
    std::string one = zh("1 worker takes 1281.8 ms for one batch, mostly decoding");
    EXPECT_TRUE(one.starts_with("1 个 worker 准备一批要 1281.8 毫秒")) << one;
}

TEST(WordsTest, ColumnsStayBelowEachOther) {
    EXPECT_EQ(zh("  setting      before  after\n"
                 "  num_workers  0       4\n"),
              "  设置         之前    之后\n"
              "  num_workers  0       4\n");
}

// "fix" is a word of an error and "run" a column of a table; as verbs they are typed.
TEST(WordsTest, NamesOfVerbsStayAsTheyAreTyped) {
    for (const char* verb : {"fix", "run"}) {
        std::string line = translated(
            fmt::format("  {:<11} show your runs as live web pages", verb), Language::chinese);
        EXPECT_EQ(line, fmt::format("  {:<11} 用实时网页显示你的运行", verb));
    }
}

TEST(WordsTest, ASentenceOfSeveralClausesIsTranslatedClauseByClause) {
    EXPECT_EQ(zh("x.yaml (saturate) for RTX 4090, 24.0 GiB; 16 cores (assumed; --cores N)"),
              "x.yaml（saturate），用于 RTX 4090, 24.0 GiB；16 核（假定；--cores N）");
}

TEST(WordsTest, ASentenceThatWasBrokenIntoLinesIsOne) {
    EXPECT_EQ(zh("      forward pass and loss run in fp32; this GPU has no bf16, so fp16 with a\n"
                 "      gradient scaler\n"),
              "      前向和损失用 fp32 运行；这块 GPU 没有 bf16，所以用 fp16 加梯度缩放器\n");
}

TEST(WordsTest, ALineThatIsASentenceIsNotJoinedWithTheNext) {
    EXPECT_EQ(zh("  step time = 1.64 ms + 0.2632 ms per sample (largest error 7.7 %)\n"
                 "  too slow: 0 steps in the 20 s it was given\n"),
              "  步时 = 1.64 毫秒 + 每样本 0.2632 毫秒（最大误差 7.7 %）\n"
              "  太慢：给的 20 秒里只有 0 步\n");
}

TEST(WordsTest, NothingOfADryRunOfFixStaysEnglish) {
    EXPECT_EQ(zh("train.py and 1 file it uses; configuration config.json"),
              "train.py 和它用到的 1 个文件；配置 config.json");
    EXPECT_EQ(zh("      each step waits for its copy to the GPU; pinned memory and "
                 "non_blocking=True let them\n"
                 "      overlap (train.py:45).\n"),
              "      每一步都要等向 GPU 的拷贝；锁页内存加 non_blocking=True "
              "能让两者重叠（train.py:45）。\n");
    EXPECT_EQ(zh("      expect: the host runs ahead of the device; the sum is the same"),
              "      预期：主机走在设备前面；和不变");
}

TEST(WordsTest, APatchStaysAsItIs) {
    std::string patch =
        "--- a/c.yaml\n+++ b/c.yaml\n@@ -1,2 +1,2 @@\n level\n-before: 1\n+before: 2\n";
    EXPECT_EQ(zh(patch + "\nno process 7\n"), patch + "\n没有进程 7\n");
    // As run shows it, among its own lines.
    std::string marked =
        "saturate:   --- a/c.yaml\nsaturate:   +++ b/c.yaml\nsaturate:   -before: 1\n";
    EXPECT_EQ(zh(marked), marked);
}

TEST(WordsTest, ALineOfAPatchTellsWhereItsTextBegins) {
    std::vector<ShownLine> lines = translated_lines(
        "the patch\nsaturate:     --- a/c.yaml\nsaturate:     +++ b/c.yaml\nsaturate:     -before: "
        "1",
        Language::english);
    ASSERT_EQ(lines.size(), 4u);
    EXPECT_FALSE(lines[0].is_patch);
    EXPECT_TRUE(lines[3].is_patch);
    EXPECT_EQ(lines[3].english.substr(lines[3].patch_from), "-before: 1");
}

TEST(WordsTest, TheSummaryOfMonitorIsChineseFromTheFirstLineToTheLast) {
    EXPECT_EQ(zh("Summary of 10.0 s, 11 readings\n"
                 "GPU 0 Fake\n"
                 "  utilisation  mean 38.2 %, deviation 19.9 points, p5-p95 20..60 % (n=11)\n"
                 "  memory       mean 10.0 GiB, peak 10.0 GiB of 24.0 GiB\n"
                 "  power        mean 200 W, peak 200 W, limit 450 W: 44 % of it used\n"
                 "  throttled    no\n"
                 "  while busy   about 33 % of what the power limit allows (estimate by power "
                 "above idle)\n"
                 "  host         CPU mean 95.0 %, peak 95.0 %, IO wait 1.0 %\n"
                 "Verdict: low: the GPU does far less than it could (mean utilisation 38.2 %)\n"
                 "  - utilisation is under 70 %: the GPU waits for the host\n"
                 "Next: saturate diagnose RUN (finds the cause)\n"),
              "监控总结：10.0 秒，11 次采样\n"
              "GPU 0 Fake\n"
              "  利用率       平均 38.2 %，波动 19.9 个百分点，p5-p95 20..60 %（n=11）\n"
              "  显存         平均 10.0 GiB，峰值 10.0 GiB，共 24.0 GiB\n"
              "  功耗         平均 200 W，峰值 200 W，上限 450 W，使用了 44 %\n"
              "  降频         无\n"
              "  忙时活动     约为功耗上限允许值的 33 %（按高于空闲的功耗估算）\n"
              "  主机         CPU 平均 95.0 %，峰值 95.0 %，IO 等待 1.0 %\n"
              "结论：偏低：GPU 做的远少于它能做的（平均利用率 38.2 %）\n"
              "  - 利用率低于 70 %：GPU 在等主机\n"
              "下一步：saturate diagnose RUN（找出原因）\n");
}

TEST(WordsTest, AVerdictOnPartOfATraceIsChineseLineByLine) {
    for (std::string_view line :
         {"this trace shows start-up: 93 % of it happens once", "record a later part",
          "in the rest the GPU is busy 24.0 % of the time",
          "during the first 98 % of this trace the GPU works on what was started before it: record "
          "whole steps",
          "biggest cause: launch bound, 37 % of the rest",
          "the fixes below would make it about 2.63 times as fast",
          "  left out of 858.6 ms recorded (busy 1.3 %): start-up 799.0 ms, work before the steady "
          "part 15.5 ms"}) {
        std::string said = zh(line);
        for (std::string_view word : {"record", "rest", "start", "busy", "fix", "left", "part"})
            EXPECT_EQ(said.find(word), said.npos) << said;
    }
}

TEST(WordsTest, ATracebackStaysAsPythonWroteIt) {
    std::string line = "      File \"/home/me/train.py\", line 17, in wait_for_server";
    EXPECT_EQ(zh(line), line);
}

TEST(WordsTest, WhatIsNotInTheTableStaysEnglish) {
    EXPECT_EQ(zh("a sentence that nobody has written"), "a sentence that nobody has written");
    EXPECT_EQ(zh(""), "");
    EXPECT_EQ(zh("\n\n"), "\n\n");
}

TEST(WordsTest, ANameOfOneWordInAHoleIsTheUsers) {
    // "memory" alone is a label, but here it is an option of the user's.
    EXPECT_EQ(zh("memory is given twice"), "memory 给了两次");
}

TEST(WordsTest, TheTableHasMoreThanTwoThousandSentences) {
    std::vector<Sentence> all = all_sentences();
    EXPECT_GT(all.size(), 2000u);
    for (const Sentence& sentence : all) EXPECT_FALSE(sentence.chinese.empty()) << sentence.english;
}

TEST(WordsTest, HostileTextDoesNotTakeForever) {
    std::string text;
    for (int i = 0; i < 400; ++i) text += "a: b, c (d) of e; ";
    EXPECT_FALSE(zh(text).empty());
}

TEST(FitTest, ALongLineIsBrokenBetweenWords) {
    EXPECT_EQ(fitted("  one two three four five", 14), "  one two\n    three four\n    five");
    EXPECT_EQ(fitted("short", 14), "short");
}

TEST(FitTest, ALineOfAnErrorGoesOnBelowItsText) {
    EXPECT_EQ(fitted("  expected: fix, doctor or optimize", 26),
              "  expected: fix, doctor or\n            optimize");
    EXPECT_EQ(fitted("  fix:      saturate fix -- python", 26),
              "  fix:      saturate fix \\\n            -- python");
}

// So that it can be copied from the screen as it is.
TEST(FitTest, ABrokenCommandIsStillOneForTheShell) {
    EXPECT_EQ(fitted("with more time: saturate fix --budget 9m -- python train.py", 30),
              "with more time: saturate fix \\\n  --budget 9m -- python \\\n  train.py");
    EXPECT_EQ(fitted("给更多时间：saturate fix --budget 9m", 26),
              "给更多时间：saturate fix \\\n  --budget 9m");
    // What stands before it is text.
    EXPECT_EQ(fitted("fix: put -- before the command: saturate run -- x", 30),
              "fix: put -- before the\n  command: saturate run -- x");
}

TEST(FitTest, AShortBracketStaysWhole) {
    EXPECT_EQ(fitted("Usage: run [--apply LIST] [-o DIR]", 20),
              "Usage: run\n  [--apply LIST]\n  [-o DIR]");
    EXPECT_EQ(fitted("faster: 4.00 times [2.76, 5.80], proven", 28),
              "faster: 4.00 times\n  [2.76, 5.80], proven");
}

TEST(FitTest, AWordIsNeverBroken) {
    EXPECT_EQ(fitted("see /a/very/long/path/to/a/file now", 12),
              "see\n  /a/very/long/path/to/a/file\n  now");
}

TEST(FitTest, ATableGoesOnBelowItsLastColumn) {
    EXPECT_EQ(fitted("  key   why it is so and no other", 20),
              "  key   why it is so\n        and no other");
}

TEST(FitTest, ALastColumnThatIsNarrowIsStillAColumn) {
    std::string before(53, 'x');
    EXPECT_EQ(
        fitted("  " + before + "  why it is so, and not some other way", 80),
        "  " + before + "  why it is so, and not\n" + std::string(57, ' ') + "some other way");
}

TEST(FitTest, ChineseTakesTwoColumnsAndMayBreakAnywhere) {
    EXPECT_EQ(fitted("等待数据的时间太长，先增加", 12), "等待数据的时\n  间太长，先\n  增加");
    EXPECT_EQ(fitted("每秒样本/秒", 9), "每秒样\n  本/秒");
    // A mark never begins a line.
    EXPECT_EQ(fitted("等待数据的时，先", 12), "等待数据的\n  时，先");
}

TEST(FitTest, EscapesTakeNoRoom) {
    EXPECT_EQ(fitted("\x1b[1mone two\x1b[0m", 7), "\x1b[1mone two\x1b[0m");
}

TEST(FitTest, VerdictGainAndErrorHaveColour) {
    EXPECT_EQ(coloured("错误：x", "error: x"), "\x1b[1;31m错误：x\x1b[0m");
    EXPECT_EQ(coloured("       gain: 2x", "       gain: 2x"), "\x1b[32m       gain: 2x\x1b[0m");
    EXPECT_EQ(coloured("saturate:   gain: 2x", "saturate:   gain: 2x"),
              "\x1b[32msaturate:   gain: 2x\x1b[0m");
    EXPECT_EQ(coloured("plain", "plain"), "plain");
    EXPECT_EQ(coloured_patch("saturate:   -before: 1", 12),
              "\x1b[31msaturate:   -before: 1\x1b[0m");
    EXPECT_EQ(coloured_patch("   -item: a line that stays", 2), "   -item: a line that stays");
    EXPECT_EQ(coloured("error: a\n  b", "error: a b"),
              "\x1b[1;31merror: a\x1b[0m\n\x1b[1;31m  b\x1b[0m");
}

}  // namespace
}  // namespace saturate
