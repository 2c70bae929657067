// SPDX-License-Identifier: Apache-2.0
// The proof on real runs: a job against itself, twenty times. What else this machine does is part
// of the test; a proof that calls noise a gain is worth nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "process/trial_process.h"
#include "support/run.h"
#include "tuning/proof.h"

namespace saturate {
namespace {

TEST(ProofRunsTest, AJobAgainstItselfIsNoDifferenceInNineteenOfTwenty) {
#ifndef SATURATE_HAS_ENGINE
    GTEST_SKIP() << "built without LibTorch";
#endif
    TemporaryFolder folder;
    std::string config =
        folder.file("c.yaml", "job: tiny_mlp\nbatch_size: 64\nthreads: 1\nnum_workers: 1\n")
            .string();
    int runs = 0, wrong = 0;
    auto measure = [&]() -> std::optional<double> {
        std::filesystem::path run = folder.path() / fmt::format("run-{}", ++runs);
        TrialProcess trial{
            .command = {SATURATE_BINARY, "train", "--config", config, "--device", "cpu", "--bare",
                        "--quiet", "--seconds", "60", "-o", run.string()},
            .run_folder = run,
            .log = folder.path() / "log",
            .seconds = 0.5};
        TrialResult result = run_trial_process(trial);
        EXPECT_TRUE(result.ok()) << result.message;
        std::filesystem::remove_all(run);
        if (!result.ok()) return std::nullopt;
        return result.samples_per_second->per_second;
    };
    for (int i = 0; i < 20; ++i) {
        // The least number of pairs, where a wrong word is likeliest.
        Proof proof = prove({.pairs_max = 5}, measure, measure);
        ASSERT_TRUE(proof.complete);
        fmt::print("proof {:2}: {:.3f} [{:.3f}, {:.3f}] {}\n", i + 1, proof.ratio,
                   proof.interval_low, proof.interval_high, verdict_name(proof.verdict));
        std::fflush(stdout);
        wrong += proof.verdict != Verdict::no_difference;
    }
    EXPECT_LE(wrong, 1);
}

}  // namespace
}  // namespace saturate
