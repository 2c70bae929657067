// SPDX-License-Identifier: Apache-2.0
// What a longer run repeats and what it does not: the part of a trace that is judged, and the
// sentence about the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "diagnosis/diagnosis.h"
#include "trace_maker.h"

namespace saturate {
namespace {

using testing::HasSubstr;
using testing::Not;

const Finding* find(const Diagnosis& diagnosis, std::string_view id) {
    auto found = std::ranges::find(diagnosis.findings, id, &Finding::id);
    return found == diagnosis.findings.end() ? nullptr : &*found;
}

bool has_note(const Diagnosis& diagnosis, std::string_view id) {
    return std::ranges::find(diagnosis.health, id, &HealthNote::id) != diagnosis.health.end();
}

double left_out(const Diagnosis& diagnosis, std::string_view kind) {
    for (const auto& [one, ms] : diagnosis.window->left_out) {
        if (one == kind) return ms;
    }
    return 0;
}

// `count` operators of 20 us, each with a kernel that keeps the GPU busy.
int steady_work(TraceMaker& made, int at, int count) {
    for (int i = 0; i < count; ++i) {
        made.op("aten::mm", at + 20 * i, 18);
        made.kernel("gemm", at + 20 * i + 5, at + 20 * i + 12, 19);
    }
    return at + 20 * count;
}

// While a kernel is loaded the GPU does not start what was launched before it: that is start-up,
// and not work that the trace does not hold.
TEST(SteadyTest, AKernelThatWaitsForAnotherToBeLoadedIsNoCutHead) {
    TraceMaker made;
    int at = 0;
    for (int i = 0; i < 8; ++i) {
        std::string name = fmt::format("kernel_{}", i);
        made.op("aten::add", at, 20);
        made.call("cudaLaunchKernel", at + 5, 5, 90'100 + i);
        // The next call loads its own kernel and holds this one up.
        made.op("aten::mul", at + 30, 6'100);
        made.call("cudaLaunchKernel", at + 40, 6'000, 90'200 + i);
        made.gpu("kernel", "add", at + 6'030, 10, 90'100 + i);
        made.gpu("kernel", name, at + 6'045, 10, 90'200 + i);
        at += 6'200;
    }
    steady_work(made, at, 600);
    Diagnosis diagnosis = diagnose_trace(made.trace());
    EXPECT_FALSE(has_note(diagnosis, "H6"));
    EXPECT_TRUE(has_note(diagnosis, "H4"));
    EXPECT_NEAR(diagnosis.window->startup_percent, 78, 3) << diagnosis.verdict;
}

// Without operators nothing says what a call stands in.
TEST(SteadyTest, LibrariesThatStartAreSeenWithoutOperators) {
    TraceMaker made;
    made.kernel("first", 0, 10, 20);
    made.call("cudaFree", 100, 90'000);
    for (int i = 0; i < 1'000; ++i) made.kernel("gemm", 91'000 + 20 * i, 91'010 + 20 * i, 19);
    Diagnosis diagnosis = diagnose_trace(made.trace());
    EXPECT_NEAR(diagnosis.window->startup_percent, 81, 2) << diagnosis.verdict;
    EXPECT_EQ(find(diagnosis, "F09"), nullptr);
}

// What lies between two things that happen once is left out with them, and said so.
TEST(SteadyTest, TheHeadlineCountsWhatIsLeftOut) {
    TraceMaker made;
    made.op("aten::convolution", 0, 30'000);
    made.call("cudaLaunchKernel", 10, 29'000, 90'001);
    made.gpu("kernel", "conv", 29'010, 30, 90'001);
    int at = 30'100;
    for (int i = 0; i < 200; ++i) {
        made.op("aten::add", at + 200 * i, 190);
        made.kernel("add", at + 200 * i + 150, at + 200 * i + 160, 20);
    }
    at += 40'000;
    made.op("aten::linear", at, 10'000);
    made.call("cudaLaunchKernel", at + 10, 9'900, 90'002);
    made.gpu("kernel", "linear", at + 9'920, 30, 90'002);
    steady_work(made, at + 10'100, 1'000);
    Diagnosis diagnosis = diagnose_trace(made.trace());
    EXPECT_THAT(diagnosis.verdict, HasSubstr("39 % of it happens once, and 80 % comes before the "
                                             "steady part"));
    EXPECT_GT(left_out(diagnosis, "work before the steady part"), 39);
}

// Every operator is used for the first time: what is left between them is no steady part.
TEST(SteadyTest, WhatIsLeftBetweenOneOffsIsNotBlamed) {
    TraceMaker made;
    for (int i = 0; i < 40; ++i) {
        int at = 10'000 * i;
        made.op(fmt::format("aten::op_{}", i), at, 9'900);
        made.call("cudaLaunchKernel", at + 3'000, 6'800, 90'000 + i);
        made.gpu("kernel", fmt::format("kernel_{}", i), at + 9'810, 20, 90'000 + i);
        for (int k = 0; k < 4; ++k) made.kernel("add", at + 500 * k, at + 500 * k + 10, 20);
    }
    Diagnosis diagnosis = diagnose_trace(made.trace());
    EXPECT_TRUE(diagnosis.verdict.starts_with("this trace shows start-up")) << diagnosis.verdict;
    EXPECT_THAT(diagnosis.verdict, Not(HasSubstr("biggest cause")));
    EXPECT_TRUE(diagnosis.shown(5, false).empty());
}

// The loader's workers are started once, and the loop ends once.
TEST(SteadyTest, StartingAndStoppingWorkersIsNoPythonBetweenOperators) {
    TraceMaker made;
    made.op("aten::random_", 0, 10);
    int at = 30'000;
    for (int i = 0; i < 20; ++i) {
        made.host("user_annotation",
                  "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, 400);
        for (int k = 0; k < 20; ++k) {
            made.op("aten::mm", at + 410 + 80 * k, 75);
            made.kernel("gemm", at + 410 + 80 * k + 60, at + 410 + 80 * k + 70, 5);
        }
        at += 2'010;
    }
    made.host("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
              at, 20);
    made.call("cudaDeviceSynchronize", at + 14'000, 10);
    Diagnosis diagnosis = diagnose_trace(made.trace());
    EXPECT_NEAR(diagnosis.window_ms, 40.2, 0.5) << diagnosis.verdict;
    EXPECT_EQ(diagnosis.steps, 20);
    EXPECT_EQ(find(diagnosis, "F11"), nullptr);
    ASSERT_NE(find(diagnosis, "F10"), nullptr);
    EXPECT_NEAR(find(diagnosis, "F10")->share_percent, 65, 4);
    EXPECT_NEAR(find(diagnosis, "F01")->share_percent, 20, 3);
    EXPECT_NEAR(left_out(diagnosis, "behind the last step"), 14, 0.1);
}

// A trace that shows both start-up and what cannot be seen leads with the first.
TEST(SteadyTest, TimeThatIsUnknownIsNoFindings) {
    TraceMaker made;
    made.op("aten::embedding", 0, 100'000);
    made.call("cudaLaunchKernel", 10, 99'000, 90'000);
    made.gpu("kernel", "embedding", 99'010, 30, 90'000);
    int at = steady_work(made, 100'000, 200);
    for (int i = 0; i < 20; ++i) {
        // The GPU starts 2 ms late although nothing is before it in the trace.
        made.op("aten::mm", at, 20);
        made.call("cudaLaunchKernel", at + 5, 5, 91'000 + 2 * i);
        made.op("aten::item", at + 30, 4'000);
        made.call("cudaMemcpyAsync", at + 35, 5, 91'001 + 2 * i);
        made.call("cudaStreamSynchronize", at + 45, 3'900);
        made.gpu("kernel", "gemm", at + 2'000, 1'900, 91'000 + 2 * i);
        made.gpu("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", at + 3'910, 2, 91'001 + 2 * i);
        at += 4'100;
    }
    Diagnosis diagnosis = diagnose_trace(made.trace());
    EXPECT_GT(diagnosis.split.unknown, 40);
    EXPECT_TRUE(diagnosis.verdict.starts_with("this trace shows start-up")) << diagnosis.verdict;
    EXPECT_THAT(diagnosis.verdict, HasSubstr("% of the time is unknown"));
    const Finding* read = find(diagnosis, "F06");
    EXPECT_LT(read ? read->share_percent : 0, 10);
}

TEST(SteadyTest, ClocksThatDisagreeAreSaidAndLowerTheConfidence) {
    TraceMaker agrees, disagrees;
    for (int i = 0; i < 400; ++i) {
        for (TraceMaker* made : {&agrees, &disagrees}) {
            made->op("aten::mm", 100 * i, 95);
            made->kernel("gemm", 100 * i + 80, 100 * i + (made == &agrees ? 90 : 30), 5);
        }
    }
    Diagnosis right = diagnose_trace(agrees.trace()), off = diagnose_trace(disagrees.trace());
    EXPECT_FALSE(has_note(right, "H3"));
    EXPECT_TRUE(has_note(off, "H3"));
    ASSERT_NE(find(right, "F10"), nullptr);
    EXPECT_EQ(find(right, "F10")->confidence, Confidence::high);
    for (const Finding& finding : off.findings) EXPECT_NE(finding.confidence, Confidence::high);
}

// A copy to the host, then 20 ms of the host's own work on it: the copy is not to blame.
TEST(SteadyTest, WorkOnWhatWasCopiedIsNotTheCopys) {
    TraceMaker made;
    for (int i = 0; i < 10; ++i) {
        int at = 50'000 * i;
        made.op("aten::mm", at, 20);
        made.kernel("gemm", at + 5, at + 15, 29'000);
        made.op("aten::copy_", at + 30, 29'100);
        int id = made.next_id();
        made.call("cudaMemcpyAsync", at + 40, 29'050, id);
        made.gpu("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", at + 29'016, 50, id);
    }
    Diagnosis diagnosis = diagnose_trace(made.trace());
    ASSERT_NE(find(diagnosis, "F11"), nullptr) << diagnosis.verdict;
    EXPECT_NEAR(find(diagnosis, "F11")->share_percent, 40, 4);
    EXPECT_EQ(find(diagnosis, "F08"), nullptr);
}

TEST(SteadyTest, AHealthyGpuInFullPrecisionHearsOfHalf) {
    TraceMaker made;
    made.device("Tesla T4", 7, 40);
    for (int i = 0; i < 200; ++i) {
        made.op("aten::mm", 20 * i, 10);
        made.kernel("volta_sgemm_128x64_nt", 20 * i + 2, 30 + 100 * i, 99);
    }
    Diagnosis diagnosis = diagnose_trace(made.trace());
    EXPECT_TRUE(diagnosis.verdict.starts_with("healthy")) << diagnosis.verdict;
    EXPECT_THAT(diagnosis.verdict, HasSubstr("half precision could make it about"));
}

// The job's only wait began before the part that is judged: shorter kernels end it sooner.
TEST(SteadyTest, AWaitThatBeganBeforeTheWindowEndsWithItsWork) {
    TraceMaker made;
    made.device("NVIDIA A100-SXM4-40GB", 8, 108);
    for (int i = 0; i < 20; ++i) {
        made.op("aten::mm", 20 * i, 18);
        made.kernel("ampere_sgemm_128x64_tn", 20 * i + 5, 35'000 + 4'000 * i, 3'999);
    }
    made.call("cudaDeviceSynchronize", 500, 114'600);
    Diagnosis diagnosis = diagnose_trace(made.trace());
    EXPECT_TRUE(has_note(diagnosis, "H6"));
    ASSERT_NE(find(diagnosis, "F18"), nullptr) << diagnosis.verdict;
    EXPECT_GT(find(diagnosis, "F18")->gain.likely, 3);
}

// A program that computes once: the driver starts, one batch is sent, and that is all.
TEST(SteadyTest, AHandfulOfWorkBehindTheStartUpIsNotJudged) {
    for (int works : {4, 40}) {
        TraceMaker made;
        made.call("cudaMalloc", 0, 300'000);
        for (int i = 0; i < works; ++i)
            made.copy("Memcpy HtoD (Pageable -> Device)", 300'100 + 3'000 * i, 300'110 + 3'000 * i,
                      1'500);
        made.kernel("k", 300'100 + 3'000 * works, 300'110 + 3'000 * works, 40);
        Diagnosis diagnosis = diagnose_trace(made.trace());
        EXPECT_TRUE(diagnosis.verdict.starts_with("this trace shows start-up"))
            << diagnosis.verdict;
        EXPECT_EQ(diagnosis.window->is_remnant, works < 10) << diagnosis.verdict;
    }
}

TEST(SteadyTest, ATraceThatIsMostlyHeadSaysSoFirst) {
    TraceMaker made;
    for (int i = 0; i < 20; ++i) {
        made.op("aten::mm", 20 * i, 18);
        made.kernel("gemm", 20 * i + 5, 60'000 + 2'000 * i, 1'999);
    }
    made.call("cudaDeviceSynchronize", 500, 99'500);
    Diagnosis diagnosis = diagnose_trace(made.trace());
    EXPECT_TRUE(has_note(diagnosis, "H6"));
    EXPECT_TRUE(
        diagnosis.verdict.starts_with("during the first 60 % of this trace the GPU works "
                                      "on what was started before it: record whole steps; "
                                      "in the rest healthy"))
        << diagnosis.verdict;
}

// One batch, and before it what a script does once: nothing of it says what a loop would wait for.
TEST(SteadyTest, SeveralBlankStretchesBeforeAllWorkAreStartUp) {
    for (bool is_marked : {false, true}) {
        TraceMaker made;
        if (is_marked) made.step(1, 0, 2'690'000);
        made.op("aten::empty", 0, 100);
        made.op("aten::random_", 1'044'000, 100);
        made.host("user_annotation",
                  "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 1'044'400,
                  780'000);
        made.op("aten::to", 2'665'000, 100);
        steady_work(made, 2'665'200, 1'000);
        Diagnosis diagnosis = diagnose_trace(made.trace());
        bool is_startup = diagnosis.verdict.starts_with("this trace shows start-up");
        EXPECT_NE(is_startup, is_marked) << diagnosis.verdict;
        if (is_marked) continue;
        EXPECT_TRUE(diagnosis.shown(5, false).empty()) << diagnosis.verdict;
        EXPECT_GT(*diagnosis.busy_percent, 90);
    }
}

TEST(SteadyTest, TheFirstBatchOfNewWorkersIsNoWaitForData) {
    TraceMaker made;
    made.op("aten::random_", 0, 10);
    int at = 1'000;
    for (int i = 0; i < 20; ++i) {
        int wait = i == 0 ? 40'000 : 400;
        made.host("user_annotation",
                  "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", at, wait);
        steady_work(made, at + wait + 10, 98);
        at += wait + 1'990;
    }
    Diagnosis diagnosis = diagnose_trace(made.trace());
    EXPECT_NEAR(diagnosis.window->startup_percent, 45, 3) << diagnosis.verdict;
    EXPECT_EQ(find(diagnosis, "F05"), nullptr);
    ASSERT_NE(find(diagnosis, "F01"), nullptr);
    EXPECT_NEAR(find(diagnosis, "F01")->share_percent, 17, 2);
}

// A launch that is held up for 30 ms: by the driver when the GPU idles meanwhile, by a full queue
// when it works.
TEST(SteadyTest, ALongLaunchWhileTheGpuIdlesHappensOnce) {
    for (int work : {19, 29'900}) {
        TraceMaker made;
        int at = steady_work(made, 0, 400);
        made.op("aten::mm", at, 18);
        made.kernel("gemm", at + 5, at + 12, work);
        made.op("aten::mm", at + 25, 30'100);
        made.call("cudaLaunchKernel", at + 30, 30'000, 90'000);
        made.gpu("kernel", "gemm", at + 30'040, 19, 90'000);
        steady_work(made, at + 30'200, 1'000);
        Diagnosis diagnosis = diagnose_trace(made.trace());
        EXPECT_NEAR(diagnosis.window->startup_percent, work < 100 ? 51 : 0, 2) << diagnosis.verdict;
    }
}

TEST(SteadyTest, AMomentBehindWhatIsLeftOutIsNotJudged) {
    TraceMaker made;
    for (int i = 0; i < 10; ++i) {
        made.op("aten::mm", 20 * i, 18);
        made.kernel("gemm", 20 * i + 5, 4'000 + 20 * i, 19);
    }
    made.call("cudaDeviceSynchronize", 210, 4'000);
    Diagnosis diagnosis = diagnose_trace(made.trace());
    EXPECT_TRUE(has_note(diagnosis, "H6"));
    EXPECT_THAT(diagnosis.verdict,
                HasSubstr("too little of the job's own work was recorded (0.2 of 4.2 ms"));
    EXPECT_TRUE(diagnosis.shown(5, false).empty());
}

// The host is done with its steps long before the GPU.
TEST(SteadyTest, AStepTakesAsLongAsItsWork) {
    TraceMaker made;
    for (int i = 0; i < 5; ++i) {
        made.step(i, 1'000 * i, 1'000);
        made.op("aten::mm", 1'000 * i, 100);
        made.kernel("gemm", 1'000 * i + 5, 20 + 5'000 * i, 5'000);
    }
    EXPECT_NEAR(*diagnose_trace(made.trace()).step_ms, 5, 0.1);
}

// Windows sends launches in batches: the first of four starts late, and nothing else holds it.
TEST(SteadyTest, LaunchesThatAreSentInBatchesAreLatency) {
    TraceMaker made;
    for (int i = 0; i < 100; ++i) {
        for (int k = 0; k < 4; ++k) {
            made.op("aten::mm", 400 * i + 100 * k, 95);
            made.kernel("gemm", 400 * i + 100 * k + 5, 400 * i + (k < 3 ? 265 + 6 * k : 320), 5);
        }
    }
    Diagnosis diagnosis = diagnose_trace(made.trace());
    EXPECT_LT(diagnosis.split.unknown, 2) << diagnosis.verdict;
    ASSERT_NE(find(diagnosis, "F10"), nullptr);
    EXPECT_GT(find(diagnosis, "F10")->share_percent, 80);
}

}  // namespace
}  // namespace saturate
