// SPDX-License-Identifier: Apache-2.0
// ./saturate of a checkout: LibTorch is fetched and what trains is built for commands that need it, and for no other.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

// A checkout in which building only says what it was asked for, with a Python that has torch or has not.
class CheckoutTest : public testing::TestWithParam<bool> {
  protected:
    CheckoutTest() {
        fs::copy_file(SATURATE_SOURCE_DIR "/saturate", folder_.path() / "saturate");
        for (const char* name : {"app", "src", "cuda", "cmake", "python"})
            fs::create_directory(folder_.path() / name);
        for (const char* name : {"CMakeLists.txt", "CMakePresets.json"}) folder_.file(name, "");
        script("tools/build", "echo \"${*: -1}\"");
        script("build/release/saturate", "");
        script("bin/python3", "exit 1");
        script("bin/python", GetParam() ? "exit 0" : "exit 1");
    }

    std::string built_for(const std::string& words) {
        std::string path = (folder_.path() / "bin").string() + ":" + std::getenv("PATH");
        Ran ran = run({"bash", "-c", "./saturate " + words},
                      {.folder = folder_.path(),
                       .environment = {{"PATH", path},
                                       {"SATURATE_PYTHON", ""},
                                       {"SATURATE_CACHE", folder_.path() / "cache"}}});
        EXPECT_EQ(ran.status, 0) << ran.err;
        return ran.out;
    }

    // A time as seen from now, at which something was built or fetched.
    void at(const std::string& name, std::chrono::hours time) {
        fs::last_write_time(folder_.path() / name, fs::file_time_type::clock::now() + time);
    }
    void built(std::chrono::hours time) {
        for (const char* name : {"build/release/.built-engine", "build/release/.built-saturate"}) {
            folder_.file(name, "");
            at(name, time);
        }
    }
    void fetched(const std::string& name, std::chrono::hours time) {
        fs::create_directories(folder_.path() / "cache" / name);
        at("cache/" + name, time);
    }

  private:
    void script(const std::string& name, const std::string& line) {
        fs::path file = folder_.file(name, "#!/usr/bin/env bash\n" + line + "\n");
        fs::permissions(file, fs::perms::owner_all);
    }
    TemporaryFolder folder_;
};

TEST_P(CheckoutTest, WhatTrainsIsBuiltForWhatNeedsIt) {
    for (const char* words :
         {"train --config c.yaml", "selftest", "tune --config c.yaml",
          "optimize --config c.yaml --benchmark", "bench gpu", "demo classifier",
          "demo -o out classifier", "demo --device cpu", "--yes demo --device=cpu"})
        EXPECT_EQ(built_for(words), "saturate_cuda\n") << words;
}

TEST_P(CheckoutTest, WhatTrainsIsNotBuiltForTheRest) {
    for (const char* words :
         {"", "--help", "doctor", "fix -- python train.py --device cuda", "run -- train --help",
          "train --help", "tune -h", "tune -- python train.py", "optimize --config c.yaml",
          "optimize --config c.yaml --benchmark -- python train.py --config {config}",
          "bench loader --config c.yaml", "demo --help"})
        EXPECT_EQ(built_for(words), "saturate\n") << words;
}

TEST_P(CheckoutTest, TheDemoNeedsItOnlyWithoutAPythonThatHasTorch) {
    const char* expected = GetParam() ? "saturate\n" : "saturate_cuda\n";
    EXPECT_EQ(built_for("demo"), expected);
    EXPECT_EQ(built_for("demo -o out --json"), expected);
}

// The driver came later, and doctor's advice was followed: tools/bootstrap torch.
TEST_P(CheckoutTest, ALibTorchWithCudaThatCameLaterIsBuiltWith) {
    using std::chrono::hours;
    built(hours(1));
    fetched("torch-2.15.0-cpu", hours(2));
    EXPECT_EQ(built_for("train --config c.yaml"), "");
    fetched("torch-2.15.0-cuda", hours(2));
    EXPECT_EQ(built_for("train --config c.yaml"), "saturate_cuda\n");
    EXPECT_EQ(built_for("doctor"), "");
    built(hours(3));
    EXPECT_EQ(built_for("train --config c.yaml"), "");
}

INSTANTIATE_TEST_SUITE_P(Python, CheckoutTest, testing::Bool(), [](const auto& with) {
    return with.param ? "WithTorch" : "WithoutTorch";
});

}  // namespace
}  // namespace saturate
