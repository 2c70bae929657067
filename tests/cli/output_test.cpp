// SPDX-License-Identifier: Apache-2.0
// The one rule for outputs, as the verbs keep it: never an input, never what is there, private
// stays private; and paths that cannot be used are the user's mistake, not ours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class OutputCliTest : public testing::Test {
  protected:
    Ran saturate(std::vector<std::string> words, std::map<std::string, std::string> more = {}) {
        words.insert(words.begin(), SATURATE_BINARY);
        return run(words, {.folder = folder_.path(), .environment = std::move(more)});
    }
    std::string text(const std::string& name) const {
        return read_file(folder_.path() / name, 1 << 24, "a file");
    }
    // A record of the smallest kind.
    void record(const std::string& name) {
        Ran ran = saturate({"monitor", "--duration", "0.1", "--interval", "0.1", "-o", name});
        ASSERT_EQ(ran.status, 0) << ran.err;
    }
    TemporaryFolder folder_;
};

TEST_F(OutputCliTest, OptimizeReplacesNothingUnlessForced) {
    fs::path config = folder_.file("a.yaml", "job: classifier\nnum_workers: 0\nbatch_size: 32\n");
    fs::permissions(config, fs::perms(0600));
    folder_.file("a_gpu_optimized.yaml", "mine\n");
    std::vector<std::string> command{"optimize", "--config", "a.yaml", "--gpu", "RTX 4090"};
    Ran refused = saturate(command);
    EXPECT_EQ(refused.status, 2);
    EXPECT_EQ(
        refused.err,
        "error: a_gpu_optimized.yaml: the output already exists\n  expected: a file that does not "
        "exist yet\n  fix:      replace it with --force, or choose another with -o\n");
    EXPECT_EQ(text("a_gpu_optimized.yaml"), "mine\n");
    command.emplace_back("--force");
    fs::remove(folder_.path() / "a_gpu_optimized.yaml");
    EXPECT_EQ(saturate(command).status, 0);
    EXPECT_EQ(saturate(command).status, 0);
    EXPECT_EQ(fs::status(folder_.path() / "a_gpu_optimized.yaml").permissions(), fs::perms(0600));
    EXPECT_EQ(text("a.yaml"), "job: classifier\nnum_workers: 0\nbatch_size: 32\n");
}

TEST_F(OutputCliTest, ADashIsStandardOutputAndNoFile) {
    folder_.file("a.yaml", "job: classifier\nnum_workers: 0\nbatch_size: 32\n");
    Ran ran = saturate({"optimize", "--config", "a.yaml", "--gpu", "RTX 4090", "-o", "-"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("job: classifier\n"));
    EXPECT_THAT(ran.out, Not(HasSubstr("written to")));
    EXPECT_THAT(ran.err, HasSubstr("written to standard output"));
    record("rec");
    Ran page = saturate({"report", "rec", "-o", "-"});
    EXPECT_EQ(page.status, 0) << page.err;
    EXPECT_THAT(page.out, testing::StartsWith("<!"));
    for (std::vector<std::string> command :
         {std::vector<std::string>{"monitor", "--duration", "0.1", "-o", "-"},
          {"data", "make", "sequence", "-o", "-"},
          {"tune", "-o", "-", "--", "true"}})
        EXPECT_EQ(saturate(command).status, 2) << command[0];
    EXPECT_EQ(saturate({"run", "-o", "-", "--", "true"}).status, 125);
    EXPECT_FALSE(fs::exists(folder_.path() / "-"));
}

TEST_F(OutputCliTest, ReportAndDiagnoseNeverOverwriteWhatTheyRead) {
    record("rec");
    std::string before = text("rec/samples.jsonl");
    EXPECT_EQ(saturate({"report", "rec", "-o", "rec/samples.jsonl"}).status, 2);
    EXPECT_EQ(saturate({"report", "rec", "-o", "rec/samples.jsonl", "--force"}).status, 2);
    EXPECT_EQ(saturate({"diagnose", "rec", "--html", "rec/samples.jsonl", "--force"}).status, 2);
    EXPECT_EQ(text("rec/samples.jsonl"), before);
    EXPECT_EQ(saturate({"report", "rec", "-o", "rec/report.html"}).status, 0);
    EXPECT_EQ(saturate({"report", "rec", "-o", "rec/report.html"}).status, 2);
    EXPECT_EQ(saturate({"report", "rec", "-o", "rec/report.html", "--force"}).status, 0);
    folder_.file("trace.json", "{}");
    EXPECT_EQ(saturate({"diagnose", "trace.json", "--html", "trace.json", "--force"}).status, 2);
    EXPECT_EQ(text("trace.json"), "{}");
}

// Without a driver nothing can be recorded, and nothing may be lost for it.
TEST_F(OutputCliTest, MonitorRecordKeepsARecordingThatIsThere) {
    folder_.file("old.jsonl", "a recording\n");
    std::vector<std::string> command{"monitor", "--duration", "0.1", "--record", "old.jsonl"};
    EXPECT_EQ(saturate(command).status, 2);
    command.emplace_back("--force");
    EXPECT_EQ(saturate(command, {{"LD_LIBRARY_PATH", ""}}).status, 3);
    EXPECT_EQ(text("old.jsonl"), "a recording\n");
}

TEST_F(OutputCliTest, AFolderOfTheUsersStaysWhenTheCommandIsMissing) {
    fs::create_directory(folder_.path() / "mine");
    EXPECT_EQ(saturate({"run", "-o", "mine", "--", "/no/such/program"}).status, 127);
    EXPECT_TRUE(fs::is_empty(folder_.path() / "mine"));
    EXPECT_EQ(saturate({"run", "-o", "new", "--", "/no/such/program"}).status, 127);
    EXPECT_FALSE(fs::exists(folder_.path() / "new"));
}

TEST_F(OutputCliTest, LongNamesAndLoopsAreTheUsersMistake) {
    fs::create_symlink("loop", folder_.path() / "loop");
    std::string longest(300, 'x');
    for (const std::string& name : {longest, std::string("loop"), longest + "/x"}) {
        for (std::vector<std::string> command :
             {std::vector<std::string>{"diagnose", name},
              {"report", name},
              {"serve", name},
              {"optimize", "--config", name},
              {"data", "make", "sequence", "--samples", "100", "-o", name},
              {"data", "make", "classifier", "--samples", "10", "-o", name},
              {"doctor", "--data", name},
              {"monitor", "--duration", "0.1", "-o", name},
              {"tune", "-o", name, "--", "true"}}) {
            Ran ran = saturate(command);
            EXPECT_EQ(ran.status, 2) << command[0] << ": " << ran.err;
            EXPECT_THAT(ran.err, Not(HasSubstr("bug in saturate"))) << command[0];
        }
        EXPECT_EQ(saturate({"run", "-o", name, "--", "true"}).status, 125);
    }
}

TEST_F(OutputCliTest, ReportSpeaksTheLanguageOfMessages) {
    record("rec");
    std::map<std::string, std::string> chinese{
        {"LC_ALL", ""}, {"LC_MESSAGES", "zh_CN.UTF-8"}, {"LANG", "en_US.UTF-8"}};
    auto page = [&](const std::vector<std::string>& lang,
                    const std::map<std::string, std::string>& locale) {
        std::vector<std::string> words{"report", "rec", "-o", "-"};
        words.insert(words.end(), lang.begin(), lang.end());
        return saturate(words, locale).out;
    };
    EXPECT_THAT(page({}, chinese), HasSubstr("<html lang=\"zh"));
    EXPECT_THAT(page({"--lang", "en"}, chinese), HasSubstr("<html lang=\"en"));
}

}  // namespace
}  // namespace saturate
