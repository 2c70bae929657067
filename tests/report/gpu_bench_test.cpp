// SPDX-License-Identifier: Apache-2.0
#include "report/gpu_bench.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saturate {
namespace {

using testing::HasSubstr;

GpuBench example() {
    Proof proof{.unit = "samples/s"};
    for (int i = 0; i < 6; ++i) proof.pairs.emplace_back(100 + i, 200 + 2 * i);
    judge(proof);
    proof.before = measured({100, 101, 102, 103, 104, 105});
    proof.after = measured({200, 202, 204, 206, 208, 210});
    GpuBench bench{.version = "0.1.0", .device = "cuda:0 (a <card>)", .card = "RTX 4090"};
    bench.selftest = Json::object(
        {{"checks_passed", 2}, {"checks", Json::array({Json::object(), Json::object()})}});
    bench.seconds = 600;
    bench.jobs = {{.name = "classifier",
                   .proof = proof,
                   .foretold = Gain{1.5, 1.8, 2.2},
                   .named = {.ratio = 1.9, .settings = {"compile", "num_workers"}},
                   .settings = {{"num_workers", "8"}},
                   .before = SimulatedRate{.real = 100, .simulated = 120},
                   .after = SimulatedRate{.real = 200, .simulated = 150}},
                  {.name = "locator", .without_proof = "nothing faster was found"}};
    return bench;
}

TEST(GpuBenchTest, TheTextHasARowPerJob) {
    std::string text = gpu_bench_text(example());
    EXPECT_THAT(text, HasSubstr("faster: 2.00 times [2.00, 2.00]"));
    EXPECT_THAT(text, HasSubstr("1.80 times (1.50 to 2.20)"));
    EXPECT_THAT(text, HasSubstr("1.90 times (compile, num_workers)"));
    EXPECT_THAT(text, HasSubstr("+20 % before, -25 % after"));
    EXPECT_THAT(text, HasSubstr("nothing faster was found"));
    EXPECT_THAT(text, HasSubstr("selftest: 2 of 2 checks passed\n"
                                "simulated: sim:RTX 4090, with the table's rates (--calibrate "
                                "measures them)\n"));
}

// A launch-bound job was promised 1.85 times and became 9.43 times as fast: 2.06 of it was what the
// finding named, the rest a larger batch and half precision.
TEST(GpuBenchTest, APredictionIsComparedWithWhatItIsAbout) {
    Diagnosis diagnosis;
    diagnosis.findings = {{.id = "F10", .share_percent = 50, .count = 1, .gain = {1.5, 1.85, 2.0}}};
    auto kept = [](Assignment change, double ratio) {
        return Tried{.change = std::move(change), .ratio = ratio, .kept = true};
    };
    SearchAnswer search{
        .trials = {kept({{"compile", "true"}}, 2.06), kept({{"precision", "bf16"}}, 1.15),
                   kept({{"batch_size", "1512"}}, 3.85), kept({{"num_workers", "4"}}, 1.1)},
        .best = {{"batch_size", "1512"},
                 {"compile", "true"},
                 {"num_workers", "4"},
                 {"precision", "bf16"}}};
    NamedFixes named = named_fixes(diagnosis, search);
    EXPECT_EQ(named.settings, std::vector<std::string>{"compile"});
    EXPECT_DOUBLE_EQ(named.ratio, 2.06);
    diagnosis.findings.push_back(
        {.id = "F01", .share_percent = 20, .count = 1, .gain = {1.1, 1.2, 1.25}});
    EXPECT_NEAR(named_fixes(diagnosis, search).ratio, 2.06 * 1.1, 1e-9);
    EXPECT_TRUE(named_fixes(Diagnosis{}, search).settings.empty());
}

TEST(GpuBenchTest, ThePageEscapesWhatItIsGiven) {
    std::string page = gpu_bench_page(example());
    EXPECT_THAT(page, HasSubstr("<h1>cuda:0 (a &lt;card&gt;)</h1>"));
    EXPECT_THAT(page, HasSubstr("<li>classifier: num_workers=8</li>"));
}

TEST(GpuBenchTest, ASimulatedCardIsSaidToBeOne) {
    GpuBench bench{.device = "sim:RTX 4090", .card = "RTX 4090", .is_simulated = true};
    EXPECT_TRUE(to_json(bench)["simulated"].boolean().value_or(false));
    for (const std::string& text : {gpu_bench_text(bench), gpu_bench_page(bench)})
        EXPECT_THAT(text,
                    HasSubstr("the device is simulated: no figure here comes from a real card"));
}

TEST(GpuBenchTest, WhatIsUnknownIsNull) {
    Json json = to_json(example());
    EXPECT_NEAR(*json["jobs"].items()[0]["simulated"]["before"]["off_percent"].number(), 20, 1e-9);
    EXPECT_TRUE(json["jobs"].items()[1]["proof"].is_null());
    EXPECT_TRUE(json["jobs"].items()[1]["foretold"].is_null());
    EXPECT_TRUE(json["jobs"].items()[1]["named"].is_null());
    GpuBench none;
    EXPECT_TRUE(to_json(none)["card"].is_null());
    EXPECT_THAT(gpu_bench_text(none), HasSubstr("selftest did not run\nnothing is simulated"));
}

}  // namespace
}  // namespace saturate
