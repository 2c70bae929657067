// SPDX-License-Identifier: Apache-2.0
// Training loops that others wrote: Lightning, Transformers, accelerate. Needs them
// (tests/support/python_frameworks --make).
#include "python/run_python.h"

namespace saturate {
namespace {

class RunFrameworksTest : public RunPythonTest {};

TEST_F(RunFrameworksTest, LightningsTrainerIsWatched) {
    need("python_frameworks");
    if (IsSkipped()) return;
    expect_same(script("lightning_fit.py"));
    RunRecord run = record();
    EXPECT_EQ(run.steps.size(), 80u);
    EXPECT_EQ(events(run, EventKind::evaluation), 2);
    EXPECT_EQ(run.python["loaders"].items()[0]["site"]["line"].integer(), 40);
}

TEST_F(RunFrameworksTest, TransformersTrainerIsWatched) {
    need("python_frameworks");
    if (IsSkipped()) return;
    Ran alone = plain(script("hf_trainer.py", {"out"}));
    Ran ran = watched(script("hf_trainer.py", {"out"}), {"--profile", "off"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    // The line above it tells run times.
    auto last = [](const std::string& text) { return text.substr(text.rfind("loss ")); };
    EXPECT_EQ(last(ran.out), last(alone.out));
    EXPECT_GE(record().steps.size(),
              38u);  // the last batch of an epoch comes after the loader's end
    EXPECT_EQ(events(record(), EventKind::evaluation), 0);
}

TEST_F(RunFrameworksTest, AcceleratesLoaderStaysTheUsers) {
    need("python_frameworks");
    if (IsSkipped()) return;
    expect_same(script("accelerate_loop.py"));
    RunRecord run = record();
    EXPECT_NEAR(static_cast<double>(run.steps.size()), 40, 2);
    ASSERT_EQ(run.python["loaders"].items().size(), 1u);
    EXPECT_EQ(run.python["loaders"].items()[0]["site"]["line"].integer(), 15);
}

TEST_F(RunFrameworksTest, AcceleratesLauncherHasARecordPerRank) {
    need("python_frameworks");
    if (IsSkipped()) return;
    environment_["ACCELERATE_USE_CPU"] = "1";  // --multi_gpu alone starts several processes
    environment_["OMP_NUM_THREADS"] = "1";
    std::vector<std::string> command = {
        python_,
        "-m",
        "accelerate.commands.accelerate_cli",
        "launch",
        "--multi_gpu",
        "--num_processes",
        "2",
        "--num_machines",
        "1",
        "--mixed_precision",
        "no",
        "--dynamo_backend",
        "no",
        "--main_process_port",
        "0",
        std::string(kSource) + "/tests/python/scripts/accelerate_loop.py"};
    Ran alone = plain(command), ran = watched(command, {"--profile", "off"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    auto lines = [](const std::string& text) {  // either rank may come first
        std::vector<std::string> out;
        for (std::string_view line : split(text, '\n')) out.emplace_back(line);
        std::ranges::sort(out);
        return out;
    };
    EXPECT_EQ(lines(ran.out), lines(alone.out));
    for (const char* name : {"r", "r/rank1"}) {
        RunRecord run = record(name);
        EXPECT_NEAR(static_cast<double>(run.steps.size()), 20, 2) << name;
        EXPECT_EQ(run.info.world_size, 2);
        EXPECT_EQ(run.info.rank, std::string(name) == "r" ? 0 : 1);
    }
}

}  // namespace
}  // namespace saturate
