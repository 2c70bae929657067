// SPDX-License-Identifier: Apache-2.0
// `saturate doctor` as a user runs it: on this machine, and on a stand-in for the driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

// The driver is the stand-in that plays `scenario`; without one there is none, also where a GPU is.
RunWhere with_driver(const std::string& scenario, const std::string& variant = "new") {
    std::string folder = SATURATE_NVML_REPLAY;
    return {
        .environment = {{"LD_LIBRARY_PATH", folder + "/" + variant},
                        {"SATURATE_NVML_RECORDING", folder + "/scenarios/" + scenario + ".jsonl"}}};
}

Json doctor_json(const RunWhere& where, const std::vector<std::string>& options = {}) {
    std::vector<std::string> command{SATURATE_BINARY, "doctor", "--json"};
    command.insert(command.end(), options.begin(), options.end());
    Ran ran = run(command, where);
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.err, "");
    return Json::parse(ran.out, "doctor");
}

TEST(DoctorCommandTest, EndsWellOnThisMachineWhateverIsAbsent) {
    Ran ran = run({SATURATE_BINARY, "doctor"});
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.err, "");
    for (const char* part :
         {"Machine\n", "\nSoftware\n", "\nGPUs\n", "\nMissing\n", "  cores        "})
        EXPECT_THAT(ran.out, testing::HasSubstr(part));
    EXPECT_THAT(ran.out, testing::Not(testing::HasSubstr("\033")));
}

TEST(DoctorCommandTest, JsonIsOneObjectWithTheSchemaFirst) {
    Json json = doctor_json({});
    ASSERT_TRUE(json.is_object());
    EXPECT_EQ(json.members()[0].first, "schema");
    EXPECT_EQ(json["schema"].integer(), 1);
    EXPECT_TRUE(json["gpus"].is_array());
    EXPECT_GE(json["cpu"]["cores_usable"].integer().value_or(0), 1);
    EXPECT_GT(json["memory"]["limit_bytes"].integer().value_or(0), 0);
    for (const char* key : {"nvml", "cuda", "torch"}) EXPECT_TRUE(json[key].is_object()) << key;
    EXPECT_TRUE(json["missing"].is_array());
    for (const Json& part : json["missing"].items()) {
        EXPECT_NE(part["what"].string().value_or(""), "");
        EXPECT_NE(part["costs"].string().value_or(""), "");
    }
#ifdef SATURATE_HAS_ENGINE
    EXPECT_EQ(json["torch"]["present"].boolean(), true);
    EXPECT_NE(json["torch"]["version"].string().value_or(""), "");
#else
    EXPECT_EQ(json["torch"]["present"].boolean(), false);
#endif
}

TEST(DoctorCommandTest, GpusOfTheDriverAreMatched) {
    Json json = doctor_json(with_driver("eight_gpus"));
    ASSERT_EQ(json["gpus"].items().size(), 8u);
    const Json& gpu = json["gpus"].items()[7];
    EXPECT_EQ(gpu["index"].integer(), 7);
    EXPECT_EQ(gpu["name"].string(), "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(gpu["facts"]["name"].string(), "H100 SXM5");
    EXPECT_EQ(gpu["facts"]["precision"].string(), "bf16");
    EXPECT_EQ(json["nvml"]["present"].boolean(), true);
    EXPECT_EQ(json["cuda"]["driver_serves"].string(), "13.0");
}

TEST(DoctorCommandTest, SplitGpusAndOldDriversAreNoFailure) {
    EXPECT_EQ(doctor_json(with_driver("mig"))["gpus"].items().at(0)["mig"].boolean(), true);
    Json old = doctor_json(with_driver("old_driver", "old"));
    EXPECT_EQ(old["gpus"].items().size(), 1u);
    // A V100 under a driver for CUDA 11.4: one line, by the driver.
    int lines = 0;
    for (const Json& part : old["missing"].items())
        lines += part["what"].string() == "a driver for CUDA 13 (this one supports 11.4)";
    EXPECT_EQ(lines, 1);
}

TEST(DoctorCommandTest, FilesOfTheNamedFolderAreRead) {
    TemporaryFolder folder;
    folder.file("a/data.bin", std::string(700000, 'a'));
    Json storage = doctor_json({}, {"--data", folder.path()})["storage"];
    EXPECT_EQ(storage["folder"].string(), folder.path().string());
    EXPECT_EQ(storage["read_bytes"].integer(), 700000);
    EXPECT_GT(storage["read_mb_per_second"].number().value_or(0), 0);
}

TEST(DoctorCommandTest, AnEmptyFolderHasNoReadSpeed) {
    TemporaryFolder folder;
    Json storage = doctor_json({.folder = folder.path()})["storage"];
    EXPECT_TRUE(storage["read_mb_per_second"].is_null());
    EXPECT_EQ(storage["unknown_because"].string(), "no file of at least 1.0 MiB was found");
    EXPECT_EQ(doctor_json({}, {"--data", folder.path()})["storage"]["unknown_because"].string(),
              "only empty files were found");
}

TEST(DoctorCommandTest, AMissingFolderIsTheUsersMistake) {
    Ran ran = run({SATURATE_BINARY, "doctor", "--data", "no/such/folder"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(ran.err,
              "error: no/such/folder: does not exist\n"
              "  expected: the folder that holds the training data\n");
    TemporaryFolder folder;
    ran = run({SATURATE_BINARY, "doctor", "--data", "file"},
              {.folder = folder.file("file", "x").parent_path()});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(
        ran.err,
        "error: file: is not a folder\n  expected: the folder that holds the training data\n");
}

TEST(DoctorCommandTest, ARemovedCurrentFolderIsNoFailure) {
    TemporaryFolder folder;
    fs::create_directory(folder.path() / "gone");
    Ran ran = run({"bash", "-c", "cd gone && rmdir ../gone && exec \"$0\" doctor", SATURATE_BINARY},
                  {.folder = folder.path()});
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.err, "");
}

TEST(DoctorCommandTest, UnknownOptionsAreRefusedWithASuggestion) {
    Ran ran = run({SATURATE_BINARY, "doctor", "--jsn", "extra"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(ran.err,
              "error: doctor has no option \"--jsn\"\n"
              "  expected: --help, --data, --json, --lang\n"
              "  fix:      did you mean --json?\n"
              "error: doctor: unexpected argument \"extra\"\n"
              "  expected: saturate doctor [--data DIR] [--json]\n");
}

TEST(DoctorCommandTest, HelpNamesItsOptions) {
    Ran ran = run({SATURATE_BINARY, "doctor", "--help"});
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.err, "");
    EXPECT_THAT(ran.out, testing::StartsWith("saturate doctor: show what this machine has, "
                                             "what is missing, and what you lose without it\n"
                                             "\n"
                                             "Usage: saturate doctor [--data DIR] [--json]\n"));
    EXPECT_THAT(ran.out, testing::HasSubstr("--data DIR"));
    EXPECT_THAT(ran.out, testing::HasSubstr("--json"));
}

}  // namespace
}  // namespace saturate
