// SPDX-License-Identifier: Apache-2.0
#include "telemetry/run_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "support/run.h"

namespace saturate {
namespace {

class RunDeviceTest : public testing::Test {
  protected:
    void append(const std::string& name, const std::string& text) {
        std::ofstream(folder_.path() / name, std::ios::app) << text;
    }
    TemporaryFolder folder_;
};

TEST_F(RunDeviceTest, TellsTheBusyShareOfTheStepsSinceTheReadingBefore) {
    append("run.json", R"({"schema":1,"kind":"train","device":"sim:H100 SXM","simulated":true})");
    auto reader = open_run_device(folder_.path());
    EXPECT_EQ(reader->driver().gpus.at(0).name, "sim:H100 SXM (simulated)");
    EXPECT_EQ(reader->read(0, {}).utilization_percent, std::nullopt);
    append("steps.jsonl",
           "{\"step\":0,\"t_ns\":0,\"duration_ns\":100,\"device_busy_ns\":20}\n"
           "{\"step\":1,\"t_ns\":100,\"duration_ns\":300,\"device_busy_ns\":180}\n"
           "{\"step\":2,\"t_ns\":400,\"durat");
    EXPECT_DOUBLE_EQ(reader->read(0, {}).utilization_percent.value(), 50);
    EXPECT_EQ(reader->read(0, {}).utilization_percent, std::nullopt);
    append("steps.jsonl", "ion_ns\":100,\"device_busy_ns\":90}\n");
    EXPECT_DOUBLE_EQ(reader->read(0, {}).utilization_percent.value(), 90);
}

TEST_F(RunDeviceTest, StaysUnknownWhereTheJobDoesNotCount) {
    append("run.json", R"({"schema":1,"kind":"train","device":"cpu"})");
    append("steps.jsonl", "{\"step\":0,\"t_ns\":0,\"duration_ns\":100}\nno step at all\n");
    auto reader = open_run_device(folder_.path());
    EXPECT_EQ(reader->read(0, {}).utilization_percent, std::nullopt);
}

TEST_F(RunDeviceTest, WaitsForAFolderThatIsStillToCome) {
    auto reader = open_run_device(folder_.path() / "later");
    EXPECT_EQ(reader->read(0, {}).utilization_percent, std::nullopt);
    std::filesystem::create_directory(folder_.path() / "later");
    append("later/steps.jsonl",
           "{\"step\":0,\"t_ns\":0,\"duration_ns\":100,\"device_busy_ns\":70}\n");
    EXPECT_DOUBLE_EQ(reader->read(0, {}).utilization_percent.value(), 70);
}

TEST_F(RunDeviceTest, RefusesAFolderOfAnotherKind) {
    append("notes.txt", "x");
    try {
        static_cast<void>(open_run_device(folder_.path()));
        FAIL();
    } catch (const UserError& error) {
        EXPECT_EQ(std::string(error.what()),
                  "error: " + folder_.path().string() +
                      ": --run does not name a run record: there is no run.json\n"
                      "  expected: the folder that train or run writes or will write");
    }
}

}  // namespace
}  // namespace saturate
