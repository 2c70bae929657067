// SPDX-License-Identifier: Apache-2.0
// monitor as a user runs it: against the stand-in for the driver, against recordings, and with
// everything that can go wrong.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "support/run.h"

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string scenario(const std::string& name) {
    return std::string(SATURATE_NVML_REPLAY) + "/scenarios/" + name + ".jsonl";
}

// The stand-in plays `name`; time in it moves on by 0.1 s with each tick. Empty: no driver.
RunWhere with_driver(const std::string& name, const std::string& variant = "new") {
    return {.environment = {{"LD_LIBRARY_PATH", std::string(SATURATE_NVML_REPLAY) + "/" + variant},
                            {"SATURATE_NVML_RECORDING", name.empty() ? "" : scenario(name)},
                            {"SATURATE_NVML_CLOCK", "step:0.1"},
                            {"LC_ALL", "C"}}};
}

Ran monitor(std::vector<std::string> options, const RunWhere& where = with_driver("")) {
    options.insert(options.begin(), {SATURATE_BINARY, "monitor"});
    return run(options, where);
}

std::vector<Json> json_lines(const std::string& text) {
    std::vector<Json> lines;
    for (std::string_view line : split(text, '\n')) {
        if (!line.empty()) lines.push_back(Json::parse(line, "stdout"));
    }
    return lines;
}

// The summary of a scenario seen by the driver's library, in ten ticks.
Json summary_of_scenario(const std::string& name, const std::string& variant = "new") {
    Ran ran =
        monitor({"--json", "--interval", "0.1", "--duration", "1"}, with_driver(name, variant));
    EXPECT_EQ(ran.status, 0) << name << ran.err;
    std::vector<Json> lines = json_lines(ran.out);
    return lines.empty() ? Json() : lines.back()["summary"];
}

TEST(MonitorTest, WithoutAGpuItWatchesTheHostAndSaysWhatIsUnknown) {
    Ran ran = monitor({"--json", "--interval", "0.1", "--duration", "0.2"});
    EXPECT_EQ(ran.status, 0);
    EXPECT_EQ(ran.err, "");
    std::vector<Json> lines = json_lines(ran.out);
    ASSERT_GE(lines.size(), 4u);
    EXPECT_EQ(lines[0]["start"]["gpus_absent_because"].string(), "Driver Not Loaded");
    EXPECT_EQ(lines[1]["gpus"].items().size(), 0u);
    EXPECT_TRUE(lines[1]["host"]["memory_total_bytes"].integer());
    EXPECT_TRUE(lines[2]["host"]["cpu_percent"].number());
    const Json& summary = lines.back()["summary"];
    EXPECT_EQ(summary["verdict"].string(), "unknown");
    EXPECT_EQ(summary["gpus_absent_because"].string(), "Driver Not Loaded");
}

TEST(MonitorTest, WithoutNvmlTheJobsOwnCountTellsTheBusyShare) {
    TemporaryFolder folder;
    folder.file("run.json", R"({"schema":1,"kind":"train","device":"cpu"})");
    folder.file("steps.jsonl",
                "{\"step\":0,\"t_ns\":0,\"duration_ns\":100,\"device_busy_ns\":40}\n");
    Ran ran = monitor(
        {"--json", "--interval", "0.1", "--duration", "0.2", "--run", folder.path().string()});
    EXPECT_EQ(ran.status, 0) << ran.err;
    std::vector<Json> lines = json_lines(ran.out);
    ASSERT_GE(lines.size(), 3u);
    EXPECT_EQ(lines[0]["start"]["source"].string(), "run " + folder.path().string());
    Json summary = lines.back()["summary"];
    EXPECT_EQ(summary["verdict"].string(), "low");
    EXPECT_EQ(summary["gpus"].items().at(0)["name"].string(), "cpu");
    EXPECT_DOUBLE_EQ(
        summary["gpus"].items().at(0)["utilization_percent"]["mean"].number().value_or(-1), 40);
}

TEST(MonitorTest, ABusyGpuIsGood) {
    Json summary = summary_of_scenario("busy");
    EXPECT_EQ(summary["verdict"].string(), "good");
    const Json& gpu = summary["gpus"].items().at(0);
    EXPECT_EQ(gpu["name"].string(), "NVIDIA H100 80GB HBM3");
    EXPECT_NEAR(gpu["utilization_percent"]["mean"].number().value_or(-1), 97, 1.5);
    EXPECT_EQ(gpu["power_watts"]["limit"].number(), 700);
    EXPECT_EQ(gpu["utilization_percent"]["source"].string(), "driver samples");
    EXPECT_GT(gpu["sm_active_percent"].number().value_or(-1), 90);
}

TEST(MonitorTest, EveryTroubleIsNamed) {
    auto reasons = [](const std::string& name, const std::string& variant = "new") {
        return summary_of_scenario(name, variant)["reasons"].line();
    };
    EXPECT_THAT(reasons("starved"), HasSubstr("fluctuates"));
    EXPECT_THAT(reasons("nccl_spin"), HasSubstr("busy_but_idle"));
    EXPECT_THAT(reasons("power_cap"), HasSubstr("power_capped"));
    EXPECT_THAT(reasons("mig"), HasSubstr("mig"));
    EXPECT_THAT(reasons("idle"), HasSubstr("low_utilisation"));
}

// Struct versions, sizes and handles: the stand-in counts every call that breaks NVML's rules.
TEST(MonitorTest, NoScenarioSeesACallThatBreaksTheRules) {
    TemporaryFolder folder;
    int scenarios = 0;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(SATURATE_NVML_REPLAY) + "/scenarios")) {
        if (entry.path().extension() != ".jsonl") continue;
        ++scenarios;
        std::string name = entry.path().stem();
        RunWhere where = with_driver(name, name == "old_driver" ? "old" : "new");
        std::string counts = (folder.path() / name).string();
        where.environment["SATURATE_NVML_CALLS"] = counts;
        Ran ran = monitor({"--csv", "--interval", "0.1", "--duration", "0.3"}, where);
        EXPECT_EQ(ran.status, 0) << name << ran.err;
        std::string counted = read_file(counts, 1 << 20, "counts");
        EXPECT_THAT(counted, HasSubstr("nvmlDeviceGetFieldValues")) << name;
        EXPECT_EQ(counted.find('!'), std::string::npos) << name;
    }
    EXPECT_GE(scenarios, 15);
}

TEST(MonitorTest, ProcessesAreTheSameInBothLayoutsAndWhileTheListGrows) {
    auto pids = [](const std::string& name) {
        Ran ran = monitor({"--json", "--interval", "0.1", "--duration", "0.1"}, with_driver(name));
        std::vector<Json> lines = json_lines(ran.out);
        std::vector<std::int64_t> out;
        for (const Json& process : lines.at(1)["gpus"].items().at(0)["processes"].items()) {
            out.push_back(process["pid"].integer().value_or(-1));
        }
        return out;
    };
    EXPECT_GE(pids("stride_24").size(), 2u);
    EXPECT_EQ(pids("stride_24"), pids("stride_32"));
    EXPECT_GT(pids("processes_grow").size(), pids("busy").size());
}

TEST(MonitorTest, ALostGpuDoesNotHideTheOthers) {
    Ran ran = monitor({"--json", "--interval", "0.1", "--duration", "2"}, with_driver("gpu_lost"));
    EXPECT_EQ(ran.status, 0);
    std::vector<Json> lines = json_lines(ran.out);
    const Json& last = lines.at(lines.size() - 2);
    EXPECT_TRUE(last["gpus"].items().at(0)["utilization_percent"].number());
    EXPECT_TRUE(last["gpus"].items().at(0)["fault"].is_null());
    EXPECT_EQ(last["gpus"].items().at(1)["fault"].string(), "GPU is lost");
    EXPECT_TRUE(last["gpus"].items().at(1)["utilization_percent"].is_null());
}

TEST(MonitorTest, CountersThatWrapGoOnRising) {
    Ran ran = monitor({"--replay", scenario("counter_wrap"), "--json", "--interval", "0.1"});
    std::int64_t last = -1;
    int rises = 0;
    for (const Json& line : json_lines(ran.out)) {
        for (const Json& gpu : line["gpus"].items()) {
            auto bytes = gpu["pcie_rx_bytes"].integer();
            if (!bytes) continue;
            EXPECT_GE(*bytes, last);
            EXPECT_LT(*bytes - last, 1LL << 32);
            rises += *bytes > last;
            last = *bytes;
        }
    }
    EXPECT_GT(rises, 10);
}

TEST(MonitorTest, AnOldDriverLosesSingleValuesOnly) {
    Json summary = summary_of_scenario("old_driver", "old");
    const Json& gpu = summary["gpus"].items().at(0);
    EXPECT_TRUE(gpu["utilization_percent"]["mean"].number());
    EXPECT_TRUE(gpu["power_watts"]["mean"].number());
    EXPECT_TRUE(gpu["sm_active_percent"].is_null());
}

TEST(MonitorTest, OnlyTheGpusAskedFor) {
    RunWhere where = with_driver("eight_gpus");
    Ran ran = monitor({"--json", "--gpu", "0,2", "--interval", "0.1", "--duration", "0.1"}, where);
    std::vector<Json> lines = json_lines(ran.out);
    ASSERT_EQ(lines.at(1)["gpus"].items().size(), 2u);
    EXPECT_EQ(lines.at(1)["gpus"].items()[1]["gpu"].integer(), 2);
    Ran wrong = monitor({"--gpu", "8"}, where);
    EXPECT_EQ(wrong.status, 2);
    EXPECT_EQ(wrong.err, "error: no GPU 8\n  expected: 0 to 7\n");
}

TEST(MonitorTest, ARecordingIsReplayedAsTheDriverWasSeen) {
    TemporaryFolder folder;
    std::string file = (folder.path() / "made.jsonl").string();
    Ran made = monitor({"--record", file, "--interval", "0.1", "--duration", "1", "--json"},
                       with_driver("power_cap"));
    EXPECT_EQ(made.status, 0) << made.err;
    Json seen = json_lines(made.out).back()["summary"]["gpus"].items().at(0);
    Ran again = monitor({"--replay", file, "--interval", "0.1", "--json"});
    EXPECT_EQ(again.status, 0) << again.err;
    std::vector<Json> lines = json_lines(again.out);
    EXPECT_EQ(lines[0]["start"]["notes"].items().size(), 0u);
    Json replayed = lines.back()["summary"]["gpus"].items().at(0);
    EXPECT_EQ(replayed["name"].string(), seen["name"].string());
    EXPECT_EQ(replayed["memory_bytes"].line(), seen["memory_bytes"].line());
    EXPECT_EQ(replayed["power_watts"]["peak"].line(), seen["power_watts"]["peak"].line());
    EXPECT_EQ(replayed["temperature_peak_celsius"].line(), seen["temperature_peak_celsius"].line());
}

TEST(MonitorTest, ATornRecordingIsReadUpToTheCut) {
    TemporaryFolder folder;
    std::string text = read_file(scenario("busy"), 1 << 24, "a recording");
    std::string path = folder.file("torn.jsonl", text.substr(0, text.size() / 2)).string();
    Ran ran = monitor({"--replay", path, "--interval", "0.5"});
    EXPECT_EQ(ran.status, 0);
    EXPECT_THAT(ran.err,
                HasSubstr("note: " + path +
                          ": has no end, so it may have been cut off; it is read up to the cut\n"));
    EXPECT_THAT(ran.out, HasSubstr("Verdict: good"));
}

TEST(MonitorTest, TimeGoingBackwardsInARecordingIsSaid) {
    TemporaryFolder folder;
    std::string path = folder
                           .file("back.jsonl",
                                 "{\"schema\":1,\"kind\":\"nvml-recording\",\"gpus\":[{\"name\":"
                                 "\"A\",\"uuid\":\"B\"}]}\n"
                                 "{\"t\":2,\"gpu\":0,\"call\":\"UtilizationRates\",\"value\":{"
                                 "\"gpu\":90,\"memory\":1}}\n"
                                 "{\"t\":1,\"gpu\":0,\"call\":\"PowerUsage\",\"value\":100000}\n"
                                 "{\"t\":3,\"call\":\"end\"}\n")
                           .string();
    Ran ran = monitor({"--replay", path});
    EXPECT_EQ(ran.status, 0);
    EXPECT_THAT(ran.err,
                HasSubstr("note: " + path + ": time goes backwards 1 times, first at line 3\n"));
}

TEST(MonitorTest, RefusesWhatIsNoRecordingOrANewerOne) {
    TemporaryFolder folder;
    std::string newer =
        folder.file("newer.jsonl", "{\"schema\":9,\"kind\":\"nvml-recording\"}\n").string();
    Ran ran = monitor({"--replay", newer});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(
        ran.err,
        "error: " + newer +
            ":1: recording of schema 9\n"
            "  expected: schema 1 or older, all that this version knows\n"
            "  fix:      read it with the version of saturate that wrote it, or a newer one\n");
    std::string other = folder.file("other.jsonl", "hello\n").string();
    ran = monitor({"--replay", other});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: " + other +
                  ":1: no recording of NVML\n"
                  "  expected: a file that monitor --record wrote (docs/nvml-recording.md)\n");
}

TEST(MonitorTest, RefusesIntervalsOutOfRange) {
    for (const char* given : {"0", "-1", "0.05", "1e9", "nan", "soon"}) {
        Ran ran = monitor({"--interval", given});
        EXPECT_EQ(ran.status, 2) << given;
        EXPECT_EQ(
            ran.err,
            fmt::format("error: --interval is \"{}\"\n  expected: a number from 0.1 to 3600\n",
                        given));
        EXPECT_EQ(ran.out, "");
    }
}

TEST(MonitorTest, RefusesOptionsThatContradictEachOther) {
    EXPECT_EQ(monitor({"--json", "--csv"}).err,
              "error: --json and --csv are both given\n  expected: one of them\n");
    EXPECT_EQ(monitor({"--pid", "1", "--", "true"}).err,
              "error: --pid and a command are both given\n  expected: one of them\n");
    EXPECT_EQ(monitor({"--low", "90", "--good", "80"}).err,
              "error: --low is 90 and --good is 80\n  expected: --low no higher than --good\n");
    EXPECT_EQ(monitor({"--gpu", "0,x"}).err,
              "error: --gpu is \"0,x\"\n  expected: comma-separated numbers, such as 0,2\n  fix:   "
              "   --gpu 0,2\n");
    EXPECT_EQ(monitor({"--pid", "4194304"}).err,
              "error: no process 4194304\n  expected: the pid of a running process\n");
}

TEST(MonitorTest, EndsWithItsCommandAndTellsItsFate) {
    Ran good = monitor({"--json", "--", "true"});
    EXPECT_EQ(good.status, 0);
    EXPECT_EQ(json_lines(good.out).back()["summary"]["ended"].string(), "done");
    Ran bad = monitor({"--json", "--", "sh", "-c", "echo hello; exit 3"});
    EXPECT_EQ(bad.status, 4);
    EXPECT_THAT(bad.err, HasSubstr("hello"));
    EXPECT_EQ(json_lines(bad.out).back()["summary"]["ended"].string(), "failed");
    Ran none = monitor({"--", "/no/such/program"});
    EXPECT_EQ(none.status, 2);
    EXPECT_EQ(none.err,
              "error: cannot start \"/no/such/program\": No such file or directory\n  expected: a "
              "program that exists and can be run\n");
}

// `timeout` is the user at the keyboard.
// Starts monitor, waits until its record holds a sample (30 s at most), then sends the signal. With
// job control (set -m), because a shell without it starts background jobs deaf to SIGINT.
Ran interrupt_monitor(const std::string& signal, const std::string& record) {
    const char* kScript =
        "set -m; \"$0\" monitor --interval 0.1 -o \"$2\" & pid=$!\n"
        "for i in $(seq 600); do [ -s \"$2/samples.jsonl\" ] && break; sleep 0.05; done\n"
        "kill -s \"$1\" $pid; wait $pid";
    return run({"bash", "-c", kScript, SATURATE_BINARY, signal, record}, with_driver("busy"));
}

TEST(MonitorTest, ASignalEndsWithTheSummaryAndAWholeRecord) {
    for (const char* signal : {"INT", "TERM", "HUP"}) {
        TemporaryFolder folder;
        Ran ran = interrupt_monitor(signal, folder.path() / "run");
        EXPECT_EQ(ran.status, 130) << signal << ran.err;
        EXPECT_THAT(ran.out, HasSubstr("Verdict: ")) << signal;
        Json summary = Json::parse(read_file(folder.path() / "run/summary.json", 1 << 20, "x"),
                                   "summary.json");
        EXPECT_EQ(summary["ended"].string(), "interrupted");
        EXPECT_EQ(summary["dropped"].line(),
                  Json::object({{"steps", 0}, {"events", 0}, {"samples", 0}}).line());
    }
}

TEST(MonitorTest, AKilledMonitorLeavesAReadableRecord) {
    TemporaryFolder folder;
    Ran ran = interrupt_monitor("KILL", folder.path() / "run");
    EXPECT_EQ(ran.status, 128 + 9);
    EXPECT_THAT(read_file(folder.path() / "run/samples.jsonl", 1 << 20, "x"),
                StartsWith("{\"type\":\"gpu\",\"t_ns\":"));
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "run/summary.json"));
}

TEST(MonitorTest, AFullDiskLosesNeitherTheSummaryNorItsStatus) {
    Ran ran = monitor({"--record", "/dev/full", "--interval", "0.1", "--duration", "0.2"},
                      with_driver("busy"));
    EXPECT_EQ(ran.status, 3);
    EXPECT_THAT(ran.out, HasSubstr("Verdict: "));
    EXPECT_THAT(
        ran.err,
        HasSubstr("error: the recording is incomplete: /dev/full: No space left on device\n"));
    Ran taken = monitor({"-o", "/proc/none", "--duration", "0.1"});
    EXPECT_EQ(taken.status, 2);
    EXPECT_THAT(taken.err, StartsWith("error: /proc/none: cannot create a folder here"));
}

TEST(MonitorTest, PrintsLinesInChineseAndCsv) {
    Ran chinese = monitor({"--replay", scenario("busy"), "--lang", "zh"});
    EXPECT_THAT(chinese.out, HasSubstr("结论：良好：GPU 一直在忙"));
    EXPECT_THAT(chinese.out, HasSubstr("610/700 W | 利用率"));
    Ran csv = monitor({"--replay", scenario("busy"), "--csv", "--interval", "1"});
    EXPECT_THAT(csv.out, StartsWith("time,t_seconds,gpu,name,fault,utilization_percent,"));
    std::vector<std::string_view> lines = split(csv.out, '\n');
    ASSERT_GT(lines.size(), 5u);
    EXPECT_EQ(split(lines[0], ',').size(), split(lines[1], ',').size());
    EXPECT_THAT(csv.err, HasSubstr("Verdict: good"));
}

}  // namespace
}  // namespace saturate
