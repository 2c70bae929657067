// SPDX-License-Identifier: Apache-2.0
// tune, optimize --benchmark and demo as a user runs them. The engine is a script beside a copy of
// the program: it writes at once the run record of a job whose rate depends on its settings, so
// that nothing here waits, and nothing depends on how busy this machine is.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* kConfig =
    "job: tiny_mlp  # one's own words\n"
    "batch_size: 8\n"
    "epochs: 3\n"
    "num_workers: 0\n"
    "optimizer: sgd\n"
    "learning_rate: 0.001\n";

// A step takes 1 ms and 10 us a sample, and 2 ms more to load without workers. $SLOW names a trial
// that writes nothing and waits, $FAIL makes all of them fail. From trial number $EVEN on settings
// make no difference any more. With $EDIT the user edits the file meanwhile. An epoch has $EPOCH samples, and a run that is not bare evaluates
// for 30 ms.
constexpr const char* kEngine = R"(#!/bin/bash
batch=8 workers=0 steps=100 one=0 bare=0
while [ $# -gt 0 ]; do
    case $1 in
        -o) run=$2; shift ;;
        --set) case $2 in batch_size=*) batch=${2#*=} ;; num_workers=*) workers=${2#*=} ;; esac; shift ;;
        --steps) steps=$2; shift ;;
        --one-batch) one=1 ;;
        --bare) bare=1 ;;
        --snapshot) text=$2; shift ;;
    esac
    shift
done
if [ -n "$FAIL" ]; then echo "error: the disk is on fire" >&2; exit 2; fi
mkdir -p "$run"
if [ -n "$EDIT" ]; then cat "$text" > "$run/as_read"; echo "batch_size: 99" >> c.yaml; fi
printf '{"schema":1,"kind":"train","started_wall_ns":%s000,"extra":{"samples_per_epoch":%s}}\n' \
    "${EPOCHREALTIME/[.,]/}" "${EPOCH:-null}" > "$run/run.json"
if [ $bare = 0 ]; then
    echo '{"t_ns":9000,"event":"evaluation","duration_ns":30000000,"text":"e"}' > "$run/events.jsonl"
fi
if [ "${run##*/}" = "$SLOW" ]; then touch "$run/../slow"; exec sleep 100; fi
if [ -n "$EVEN" ] && [ "${run##*-}" -ge "$EVEN" ]; then workers=0 batch=8; fi
awk -v batch=$batch -v workers=$workers -v steps=$steps -v one=$one 'BEGIN {
    wait = workers == 0 && !one ? 2000000 : 0
    busy = 1000000 + 10000 * batch
    for (i = 0; i < steps; ++i)
        printf "{\"step\":%d,\"t_ns\":%d,\"duration_ns\":%d,\"samples\":%d,\"input_wait_ns\":%d,\"device_busy_ns\":%d,\"loss\":%g}\n",
            i, i * (wait + busy), wait + busy, batch, wait, busy, 1 / (1 + i * batch / 1000)
}' > "$run/steps.jsonl"
)";

class TuneTest : public testing::Test {
  protected:
    void SetUp() override {
        folder_.file("c.yaml", kConfig);
        fs::create_directories(folder_.path() / "bin");
        fs::copy_file(SATURATE_BINARY, folder_.path() / "bin/saturate");
        fs::path engine = folder_.file("bin/saturate-engine", kEngine);
        fs::permissions(engine, fs::perms::owner_all);
    }
    [[nodiscard]] Ran shell(const std::string& script,
                            const std::map<std::string, std::string>& more = {}) const {
        // Locks and trials of this test are its own.
        RunWhere where{.folder = folder_.path(),
                       .environment = {{"SATURATE_CACHE", (folder_.path() / "cache").string()},
                                       {"NO_COLOR", "1"}}};
        where.environment.insert(more.begin(), more.end());
        return run({"bash", "-c", script}, where);
    }
    [[nodiscard]] std::string content(const fs::path& name) const {
        return read_file(folder_.path() / name, 1 << 24, "a file");
    }
    [[nodiscard]] fs::path only_run() const {
        for (const auto& entry : fs::directory_iterator(folder_.path() / "saturate-runs"))
            if (entry.is_directory()) return entry.path();
        return {};
    }
    TemporaryFolder folder_;
};

TEST_F(TuneTest, OptimizeWithBenchmarkWritesWhatItProved) {
    Ran ran = shell("bin/saturate optimize --config c.yaml --benchmark --device cpu --max 64");
    ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("  1  baseline"));
    EXPECT_THAT(ran.out, HasSubstr("Verdict faster: 15.02 times"));
    EXPECT_THAT(ran.out, HasSubstr("written to c_gpu_optimized.yaml"));
    EXPECT_EQ(content("c.yaml"), kConfig);
    // 3.08 ms for 8 samples, then 1.08 ms, then 1.64 ms for 64. How many workers depends on the
    // machine's cores.
    std::string written = content("c_gpu_optimized.yaml");
    EXPECT_THAT(
        written,
        testing::StartsWith("job: tiny_mlp  # one's own words\n"
                            "batch_size: 64  # saturate: was 8; 64 is the smallest size within 2 % "
                            "of the best rate measured (39024 of 39024 samples/s), measured +427 "
                            "%\n"
                            "epochs: 3\n"
                            "num_workers: "));
    EXPECT_THAT(written, testing::ContainsRegex("num_workers: [1-9]+  # saturate: was 0; making a "
                                                "batch takes 1.9 times as long as the step: [1-9]+ "
                                                "workers?, measured \\+185 %\n"));
    EXPECT_THAT(written,
                testing::EndsWith("optimizer: sgd\n"
                                  "learning_rate: 0.008  # saturate: was 0.001; follows the batch "
                                  "size\n"));

    fs::path tuned = only_run();
    Json proof = Json::parse(content(tuned / "proof.json"), "proof.json");
    EXPECT_EQ(proof["verdict"].string(), "faster");
    EXPECT_EQ(proof["pairs"].items().size(), 5u);
    EXPECT_THAT(proof["loss_guard"].string().value_or(""), HasSubstr(": no worse"));
    Json all = Json::parse(content(tuned / "tune.json"), "tune.json");
    EXPECT_EQ(all["trials"].items().at(0)["cause"].string(), "baseline");
    EXPECT_NEAR(all["use"]["before"]["wait_ms_per_batch"].number().value_or(0), 2, 1e-6);
    EXPECT_EQ(all["interrupted"].boolean(), false);
}

TEST_F(TuneTest, AnEvaluationThatTakesTooLongIsMadeRarer) {
    folder_.file("c.yaml", fmt::format("{}eval_interval: 1\n", kConfig));
    // The best batch is 16, as an epoch has eight steps at least; at 1.16 ms each they take 9 ms.
    Ran ran = shell(
        "sed -i 's/epochs: 3/epochs: 30/' c.yaml; "
        "bin/saturate optimize --config c.yaml --benchmark --device cpu",
        {{"EPOCH", "128"}});
    ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_THAT(ran.err, testing::ContainsRegex("  pauses +evaluation 30 ms\n"));
    EXPECT_THAT(ran.err, testing::ContainsRegex("  eval_interval=10 +\\+[0-9]+ % over whole "
                                                "epochs, kept\n"));
    EXPECT_THAT(
        ran.out,
        HasSubstr(
            "Note: the proof covers the steps only: what longer intervals save comes on top\n"));
    // It was computed, not proven.
    EXPECT_THAT(content("c_gpu_optimized.yaml"), HasSubstr("eval_interval: 1\n"));
    EXPECT_THAT(ran.out, HasSubstr("  eval_interval: 1 -> 10  (computed from the pauses, not part "
                                   "of the proof)\n"));
    Ran all = shell(
        "bin/saturate optimize --config c.yaml --benchmark --unproven -o all.yaml "
        "--device cpu",
        {{"EPOCH", "128"}});
    ASSERT_EQ(all.status, 0) << all.out << all.err;
    EXPECT_THAT(content("all.yaml"),
                HasSubstr("eval_interval: 10  # saturate: was 1; 30 ms of evaluation after every 9 "
                          "ms of training: 76 % of the time, measured +220 %\n"));
}

TEST_F(TuneTest, EveryTrialRunsTheConfigurationAsItWasAtTheStart) {
    Ran ran =
        shell("bin/saturate tune --config c.yaml --device cpu --max 64 -o out", {{"EDIT", "1"}});
    ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_NE(content("c.yaml"), kConfig);
    int trials = 0;
    for (const auto& entry : fs::directory_iterator(folder_.path() / "out")) {
        if (!entry.is_directory()) continue;
        ++trials;
        EXPECT_EQ(read_file(entry.path() / "as_read", 1 << 20, "a file"), kConfig) << entry.path();
    }
    EXPECT_GT(trials, 5);
}

TEST_F(TuneTest, ARepeatedSearchReadsWhatWasMeasured) {
    std::string command = "bin/saturate tune --config c.yaml --device cpu --max 64 -o ";
    EXPECT_EQ(shell(command + "a").status, 0);
    Ran again = shell(command + "b");
    EXPECT_EQ(again.status, 0);
    EXPECT_THAT(again.err, HasSubstr("  1  baseline                            2,597 samples/s "
                                     "(n=9, 2,597..2,597) (measured before)\n"));
    Ran fresh = shell(command + "c --fresh");
    EXPECT_THAT(fresh.err, testing::Not(HasSubstr("measured before")));
}

// Batch 32 became 1664 and the learning rate 7.2 times as much, unproven, with status 0.
TEST_F(TuneTest, CtrlCShowsTheBestSoFarAndWritesNothing) {
    Ran ran = shell(
        "set -m; bin/saturate optimize --config c.yaml --benchmark --in-place --device cpu & "
        "pid=$!; "
        "until [ -e saturate-runs/*/slow ]; do kill -0 $pid || exit 99; sleep 0.02; done; "
        "kill -INT $pid; wait $pid",
        {{"SLOW", "trial-5"}});
    EXPECT_EQ(ran.status, 130) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("The search ended: stopped; this is the best so far"));
    EXPECT_THAT(ran.out, testing::ContainsRegex("  num_workers: 0 -> [1-9]+  \\(interrupted before "
                                                "the proof\\)\n"));
    EXPECT_THAT(ran.out, testing::EndsWith("Nothing is written.\n"));
    EXPECT_EQ(content("c.yaml"), kConfig);
    EXPECT_FALSE(fs::exists(folder_.path() / "c.yaml.bak"));
    EXPECT_FALSE(fs::exists(only_run() / "proof.json"));
}

TEST_F(TuneTest, WhatTheProofDoesNotSeeIsNeitherWrittenNorShownAsAnEffect) {
    std::string command = "bin/saturate optimize --config c.yaml --benchmark --device cpu --max 64";
    // The trials of the search are kept; what comes after it, losses and proof, is run anew.
    EXPECT_EQ(shell(command + " --dry-run").status, 0);
    Ran ran = shell(command + " --in-place", {{"EVEN", "1"}});
    EXPECT_EQ(ran.status, 1) << ran.out << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("Verdict no difference seen: 1.00 times"));
    EXPECT_THAT(ran.out, HasSubstr("(the proof shows no difference)\n"));
    EXPECT_THAT(ran.out, testing::Not(HasSubstr("measured +")));
    EXPECT_EQ(content("c.yaml"), kConfig);
    Ran json = shell(command + " --json", {{"EVEN", "1"}});
    Json told = Json::parse(json.out, "stdout");
    EXPECT_TRUE(told["changes"].items().empty());
    EXPECT_FALSE(told["unproven"].items().empty());
    EXPECT_TRUE(told["output"].is_null());
}

TEST_F(TuneTest, AFileOfAnotherProgramWantsTheCommandThatRunsIt) {
    folder_.file("other.yaml", "batch_size: 32\nnum_workers: 0\nlr: 0.1\n");
    Ran ran = shell("bin/saturate optimize --config other.yaml --benchmark");
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(
        ran.err,
        "error: other.yaml: the file has no job: key, so saturate cannot tell which program runs "
        "it\n  expected: the command that reads the file, with {config} in its place\n  fix:      "
        "add -- python train.py --config {config} (the command that you start it with)\n");
    Ran no_word = shell("bin/saturate optimize --config other.yaml --benchmark -- python train.py");
    EXPECT_EQ(no_word.status, 2);
    EXPECT_THAT(no_word.err, HasSubstr("does not contain {config}"));
    Ran no_benchmark = shell("bin/saturate optimize --config other.yaml -- python train.py");
    EXPECT_EQ(no_benchmark.status, 2);
    EXPECT_THAT(no_benchmark.err, HasSubstr("train.py: no such file"));
}

TEST_F(TuneTest, CtrlCBeforeAnythingIsMeasuredWritesNothing) {
    Ran ran = shell(
        "set -m; bin/saturate optimize --config c.yaml --benchmark --device cpu & pid=$!; "
        "until [ -e saturate-runs/*/slow ]; do kill -0 $pid || exit 99; sleep 0.02; done; "
        "kill -INT $pid; wait $pid",
        {{"SLOW", "trial-1"}});
    EXPECT_EQ(ran.status, 130) << ran.out << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("interrupted before anything was measured; nothing written\n"));
    EXPECT_FALSE(fs::exists(folder_.path() / "c_gpu_optimized.yaml"));
}

// The page lists the trials while they are made, and is gone when the search is: run() returns when
// nobody holds its stderr any more.
TEST_F(TuneTest, ServesThePagesOfItsTrials) {
    if (run({"sh", "-c", "command -v curl"}).status != 0) GTEST_SKIP() << "curl is not installed";
    Ran ran = shell(
        "set -m; bin/saturate tune --config c.yaml --device cpu --serve=127.0.0.1:0 2>err & "
        "pid=$!; "
        "until [ -e saturate-runs/*/slow ]; do kill -0 $pid || exit 99; sleep 0.02; done; "
        "url=$(sed -n 's/^the live page is //p' err); "
        "until list=$(curl -s ${url}runs) && [[ $list == *trial-5* ]]; do sleep 0.02; done; "
        "echo \"$list\"; echo THE NEWEST; curl -s $url; kill -INT $pid; wait $pid; "
        "until ! curl -s $url >/dev/null; do sleep 0.02; done; echo GONE",
        {{"SLOW", "trial-5"}});
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err << content("err");
    std::size_t newest = ran.out.find("THE NEWEST");
    std::string list = ran.out.substr(0, newest);
    for (int trial = 1; trial <= 5; ++trial)
        EXPECT_THAT(list, HasSubstr(fmt::format("href=\"run?id=trial-{}\"", trial)));
    EXPECT_THAT(list, HasSubstr(">running<"));
    EXPECT_THAT(ran.out.substr(newest), HasSubstr("trial-5"));
    EXPECT_THAT(ran.out, testing::EndsWith("GONE\n"));
}

TEST_F(TuneTest, ASecondSearchOnTheDeviceIsRefused) {
    Ran ran = shell(
        "mkdir cache; flock cache/tune-cpu.lock bin/saturate tune --config c.yaml --device cpu");
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              fmt::format("error: {}: another search is already measuring on cpu\n"
                          "  expected: one search at a time: two would disturb each other\n"
                          "  fix:      wait for it to end, or measure on another device\n",
                          (folder_.path() / "cache/tune-cpu.lock").string()));
}

TEST_F(TuneTest, AJobThatDoesNotRunAsItStandsIsSaid) {
    Ran ran = shell("bin/saturate tune --config c.yaml --device cpu -o t", {{"FAIL", "1"}});
    EXPECT_EQ(ran.status, 2);
    EXPECT_THAT(
        ran.err,
        testing::EndsWith(
            "error: c.yaml: the configuration itself does not run: error: the disk is on fire\n"
            "  expected: a job that runs without any change\n"
            "  fix:      read t/trial-1.log\n"));
}

TEST_F(TuneTest, ABudgetForNoTrialIsRefused) {
    Ran ran = shell("bin/saturate tune --config c.yaml --device cpu --budget 5s");
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: --budget is 5 s\n"
              "  expected: 20 s or more: a trial takes seconds\n"
              "  fix:      --budget 5m\n");
    EXPECT_FALSE(fs::exists(folder_.path() / "saturate-runs"));
}

TEST_F(TuneTest, MeasuringHereForAnotherGpuIsRefused) {
    Ran ran = shell("bin/saturate optimize --config c.yaml --benchmark --gpu 'H100 SXM5'");
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: --benchmark measures on this machine, and --gpu names another\n"
              "  expected: one of the two\n"
              "  fix:      --device \"sim:H100 SXM5\" simulates it\n");
}

TEST_F(TuneTest, DemoShowsBeforeAndAfterBesideTheClaims) {
    Ran ran = shell("bin/saturate demo window_cnn -o d --quiet");
    ASSERT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_THAT(ran.out, testing::StartsWith("window_cnn on sim:RTX 5090 (simulated: "));
    EXPECT_THAT(ran.out, HasSubstr("Why it is slow\n"));
    EXPECT_THAT(ran.out, HasSubstr("the write-up claims (RTX 5090)\n"));
    EXPECT_THAT(ran.out, testing::ContainsRegex("device busy, simulated .* 20-30 -> 80-95 %\n"));
    EXPECT_THAT(ran.out, testing::ContainsRegex("speed-up .* 3-6 times\n"));
    EXPECT_TRUE(fs::exists(folder_.path() / "d/tune/proof.json"));
    EXPECT_TRUE(fs::exists(folder_.path() / "data/air_quality.csv"));
}

TEST_F(TuneTest, DemoKnowsItsJobs) {
    Ran ran = shell("bin/saturate demo clasifier");
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err,
              "error: unknown job \"clasifier\"\n"
              "  expected: one of restoration, locator, classifier, sequence, window_cnn\n"
              "  fix:      saturate demo classifier\n");
}

}  // namespace
}  // namespace saturate
