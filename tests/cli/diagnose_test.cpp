// SPDX-License-Identifier: Apache-2.0
// diagnose as a user runs it: exit codes, errors in full, --json, --apply.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;

const std::string kTrace =
    std::string(SATURATE_SOURCE_DIR) + "/tests/golden/diagnosis/loader_bound/trace.json";

class DiagnoseCliTest : public testing::Test {
  protected:
    Ran diagnose(std::vector<std::string> more) {
        std::vector<std::string> command{SATURATE_BINARY, "diagnose"};
        command.insert(command.end(), more.begin(), more.end());
        return run(command, {.folder = folder.path()});
    }
    TemporaryFolder folder;
};

TEST_F(DiagnoseCliTest, JsonHoldsWhatTheDocsPromise) {
    Ran ran = diagnose({kTrace, "--json"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    Json json = Json::parse(ran.out, "stdout");
    EXPECT_EQ(json.members().front().first, "schema");
    for (const char* key :
         {"verdict", "window_ms", "steps", "busy_percent", "split_percent", "idle_percent",
          "findings", "total_gain", "replay_error_percent", "health", "dropped_events"})
        EXPECT_FALSE(json[key].is_null()) << key;
    EXPECT_EQ(json["busy_percent"].number(), 40);
    const Json& first = json["findings"].items().at(0);
    EXPECT_EQ(first["id"].string(), "F01");
    for (const char* key :
         {"name", "share_percent", "ms_per_step", "count", "confidence", "fix", "gain"})
        EXPECT_FALSE(first[key].is_null()) << key;
    EXPECT_GT(*first["gain"]["likely"].number(), 1.5);
}

TEST_F(DiagnoseCliTest, FailOnIsExitCodeOne) {
    EXPECT_EQ(diagnose({kTrace, "--fail-on", "50"}).status, 1);
    EXPECT_EQ(diagnose({kTrace, "--fail-on", "500"}).status, 0);
}

TEST_F(DiagnoseCliTest, SaysWhatIsWrongWithAnInput) {
    folder.file("other.json", "{\"a\": 1}");
    Ran ran = diagnose({"other.json"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: other.json: is JSON, but has no \"traceEvents\"\n"
              "  expected: a trace of the PyTorch profiler\n"
              "  fix:      saturate diagnose --how prints how to record one\n");
    EXPECT_EQ(diagnose({"missing.json"}).status, 2);
    EXPECT_EQ(diagnose({}).status, 2);
    Ran empty = diagnose({"."});
    EXPECT_EQ(empty.status, 2);
}

TEST_F(DiagnoseCliTest, ComparesTwoInputs) {
    Ran ran = diagnose({"--before", kTrace, "--after", kTrace});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("step: 1.0 ms to 1.0 ms, 1.000 times as fast"));
    EXPECT_THAT(ran.out, HasSubstr("F01 waiting for data: 59"));
    EXPECT_EQ(diagnose({"--before", kTrace}).status, 2);
}

TEST_F(DiagnoseCliTest, AppliesASettingToTheConfigurationAndKeepsTheOldOne) {
    std::filesystem::path file =
        folder.file("job.yaml", "batch_size: 32\nnum_workers: 0  # slow\n");
    Ran ran = diagnose({kTrace, "job.yaml", "--apply"});
    ASSERT_EQ(ran.status, 0) << ran.err;
    EXPECT_THAT(read_file(file, 1 << 16, "a file"), HasSubstr("num_workers: 3"));
    EXPECT_EQ(read_file(file.string() + ".bak", 1 << 16, "a file"),
              "batch_size: 32\nnum_workers: 0  # slow\n");
    EXPECT_EQ(diagnose({kTrace, "--apply"}).status, 2);
}

TEST_F(DiagnoseCliTest, PrintsHowToRecord) {
    Ran ran = diagnose({"--how"});
    EXPECT_EQ(ran.status, 0);
    EXPECT_THAT(ran.out, HasSubstr("schedule(wait=1, warmup=1, active=6, repeat=1)"));
    EXPECT_THAT(ran.out, HasSubstr("with_stack=True, record_shapes=True"));
}

}  // namespace
}  // namespace saturate
