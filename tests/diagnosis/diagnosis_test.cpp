// SPDX-License-Identifier: Apache-2.0
// The timeline, the replay and the rules on traces small enough to check by hand.
#include "diagnosis/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnosis/kernels.h"
#include "diagnosis/replay.h"
#include "trace_maker.h"

namespace saturate {
namespace {

const Finding* find(const Diagnosis& diagnosis, std::string_view id) {
    for (const Finding& finding : diagnosis.findings) {
        if (finding.id == id) return &finding;
    }
    return nullptr;
}

// Four steps of 1000 us: 600 in the loader, then a kernel of 400.
TraceMaker loader_bound() {
    TraceMaker maker;
    for (int i = 0; i < 4; ++i) {
        int at = i * 1000;
        maker.step(i, at, 1000);
        maker.host("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                   at, 590);
        maker.op("aten::mm", at + 592, 8);
        maker.kernel("volta_sgemm_64x64_nt", at + 594, at + 600, 400);
    }
    return maker;
}

TEST(DiagnosisTest, WhereNothingMarksStepsTheOptimizerDoes) {
    TraceMaker maker;
    for (int i = 0; i < 12; ++i) {
        int start = 1000 * i;
        maker.op("aten::linear", start, 200);
        maker.host("user_annotation", "Optimizer.step#SGD.step", start + 300, 100);
        maker.host("user_annotation", "Optimizer.step#Adam.step", start + 500, 100);
    }
    Diagnosis diagnosis = diagnose_trace(maker.trace());
    EXPECT_EQ(diagnosis.steps, 12);  // by SGD's, which comes first
    EXPECT_NEAR(*diagnosis.step_ms, 1.0, 0.05);
    EXPECT_NEAR(diagnosis.window_ms, 11.6, 1e-9);
    maker.op("aten::cat", 12000, 3000);  // long after the loop: the whole trace is looked at
    EXPECT_EQ(diagnose_trace(maker.trace()).steps, 0);
}

TEST(TimelineTest, ChargesAGapToWhatTheHostDidBeforeTheLaunch) {
    Trace trace = loader_bound().trace();
    Timeline line = make_timeline(trace);
    EXPECT_EQ(line.length_ns(), 4'000'000);
    EXPECT_EQ(line.steps.size(), 4u);
    EXPECT_DOUBLE_EQ(line.busy_percent(), 40.0);
    EXPECT_EQ(line.gaps.size(), 4u);
    EXPECT_NEAR(line.percent(at(line.causes, Cause::input)), 60, 0.5);
    std::int64_t sum = line.split.busy_ns() + line.split.idle_ns + line.split.unknown_ns;
    EXPECT_EQ(sum, line.length_ns());
    EXPECT_EQ(line.steps[1].kernels, 1u);
    EXPECT_EQ(line.steps[1].split.compute_ns, 400'000);
}

TEST(TimelineTest, ChargesEachBusyMomentOnceByPriority) {
    TraceMaker maker;
    maker.step(0, 0, 100);
    maker.kernel("gemm", 0, 10, 30);
    maker.call("cudaLaunchKernel", 6, 2, 900);
    maker.gpu("kernel", "ncclKernel_AllReduce", 20, 40, 900, 8);
    maker.call("cudaMemcpyAsync", 8, 2, 901);
    maker.gpu("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 50, 20, 901, 9);
    Trace trace = maker.trace();
    Timeline line = make_timeline(trace);
    EXPECT_EQ(line.split.compute_ns, 30'000);
    EXPECT_EQ(line.split.communication_ns, 20'000);
    EXPECT_EQ(line.split.memcpy_ns, 10'000);
    EXPECT_EQ(line.split.idle_ns, 40'000);
}

TEST(TimelineTest, CountsTimeInsideAGraphWithoutNodesAsUnknown) {
    TraceMaker maker;
    maker.step(0, 0, 1000);
    maker.kernel("first", 0, 10, 90);
    maker.call("cudaGraphLaunch", 10, 5, 500);
    maker.kernel("last", 20, 900, 100);
    Trace trace = maker.trace();
    Timeline line = make_timeline(trace);
    EXPECT_EQ(at(line.causes, Cause::graph), 800'000);
    EXPECT_EQ(line.split.unknown_ns, 800'000);
    EXPECT_EQ(line.split.idle_ns, 10'000);
    Diagnosis diagnosis = diagnose_trace(trace);
    EXPECT_THAT(diagnosis.verdict,
                testing::StartsWith("cannot say: 80 % of the recorded time is unknown"));
}

TEST(TimelineTest, DropsAFirstStepThatHoldsTheProfilersStart) {
    TraceMaker maker;
    maker.step(0, 0, 5000);
    for (int i = 1; i < 4; ++i) {
        maker.step(i, 4000 + i * 1000, 1000);
        maker.kernel("k", 4000 + i * 1000, 4010 + i * 1000, 900);
    }
    Trace trace = maker.trace();
    Timeline line = make_timeline(trace);
    EXPECT_EQ(line.steps_dropped, 1u);
    EXPECT_EQ(line.start_ns, 5'000'000);
}

TEST(ReplayTest, GivesTheMeasuredWindowUnchangedAndTheShorterOneChanged) {
    Trace trace = loader_bound().trace();
    Timeline line = make_timeline(trace);
    Replay replay(line);
    EXPECT_LT(replay.error_percent(), 0.1);
    ReplayChange change;
    change.scale(Cause::input) = 0;
    // Per step at best the kernel of 400 us remains.
    EXPECT_NEAR(static_cast<double>(replay.run(change)), 1'620'000, 40'000);
    ReplayChange faster;
    faster.gpu_scale = [](std::uint32_t) { return 0.5; };
    // The loader sets the pace: a faster GPU changes nothing.
    EXPECT_EQ(replay.run(faster), replay.run({}));
}

TEST(ReplayTest, RemovingAWaitLetsTheHostRunAhead) {
    TraceMaker maker;
    maker.step(0, 0, 1000);
    for (int i = 0; i < 5; ++i) {
        maker.kernel("k", i * 200, 10 + i * 200, 100);
        maker.call("cudaDeviceSynchronize", 6 + i * 200, 106);
        maker.op("aten::python_like", 115 + i * 200, 80);
    }
    Trace trace = maker.trace();
    Timeline line = make_timeline(trace);
    Replay replay(line);
    EXPECT_LT(replay.error_percent(), 1);
    ReplayChange change;
    change.unblock = [](std::uint32_t) { return true; };
    EXPECT_GT(replay.gain(change), 1.3);
}

TEST(FindingsTest, NamesTheLoaderInTheTrainingProcessFirst) {
    Diagnosis diagnosis = diagnose_trace(loader_bound().trace());
    ASSERT_FALSE(diagnosis.shown(5, false).empty());
    EXPECT_EQ(diagnosis.shown(5, false)[0].id, "F01");
    ASSERT_NE(find(diagnosis, "F02"), nullptr);
    EXPECT_EQ(find(diagnosis, "F02")->part_of, "F01");
    EXPECT_NEAR(find(diagnosis, "F01")->gain.likely, 2.2, 0.1);
    EXPECT_GE(diagnosis.total.likely, find(diagnosis, "F01")->gain.likely);
}

TEST(FindingsTest, SeesValuesReadInTheLoop) {
    TraceMaker maker;
    for (int i = 0; i < 4; ++i) {
        int at = i * 1000;
        maker.step(i, at, 1000);
        maker.kernel("k", at + 300, at + 310, 500);
        int id = maker.next_id();
        maker.op("aten::item", at + 320, 520);
        maker.call("cudaMemcpyAsync", at + 322, 500, id);
        maker.gpu("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", at + 811, 2, id);
        maker.call("cudaStreamSynchronize", at + 825, 10);
    }
    Diagnosis diagnosis = diagnose_trace(maker.trace());
    ASSERT_NE(find(diagnosis, "F06"), nullptr);
    EXPECT_EQ(find(diagnosis, "F06")->count, 4);
    EXPECT_EQ(find(diagnosis, "F08"), nullptr);  // one copy per step is not many
}

TEST(FindingsTest, SeesAllocationsInSteadySteps) {
    TraceMaker maker;
    for (int i = 0; i < 4; ++i) {
        maker.step(i, i * 1000, 1000);
        maker.call("cudaFree", i * 1000 + 10, 480);
        maker.kernel("k", i * 1000 + 492, i * 1000 + 500, 500);
    }
    Diagnosis diagnosis = diagnose_trace(maker.trace());
    ASSERT_NE(find(diagnosis, "F09"), nullptr);
    EXPECT_NEAR(find(diagnosis, "F09")->share_percent, 49, 2);
}

TEST(FindingsTest, SeesAPerTensorOptimizerAndZeroGradByKernels) {
    TraceMaker maker;
    for (int i = 0; i < 3; ++i) {
        int at = i * 10'000;
        maker.step(i, at, 10'000);
        maker.kernel("k", at, at + 10, 1000);
        maker.host("user_annotation", "Optimizer.step#SGD.step", at + 1000, 5900);
        for (int k = 0; k < 60; ++k) maker.kernel("add", at + 1010 + k * 90, at + 1020 + k * 90, 2);
        maker.host("user_annotation", "Optimizer.zero_grad#SGD.zero_grad", at + 7000, 2500);
        for (int k = 0; k < 20; ++k)
            maker.kernel("fill", at + 7010 + k * 90, at + 7020 + k * 90, 2);
    }
    Diagnosis diagnosis = diagnose_trace(maker.trace());
    ASSERT_NE(find(diagnosis, "F13"), nullptr);
    EXPECT_EQ(find(diagnosis, "F13")->count, 180);
    ASSERT_NE(find(diagnosis, "F14"), nullptr);
    EXPECT_EQ(find(diagnosis, "F14")->count, 60);
}

TEST(FindingsTest, SaysThatATraceHasNoGpuWork) {
    TraceMaker maker;
    maker.step(0, 0, 1000);
    maker.op("aten::mm", 0, 900);
    Diagnosis diagnosis = diagnose_trace(maker.trace());
    EXPECT_FALSE(diagnosis.busy_percent);
    EXPECT_THAT(diagnosis.verdict, testing::StartsWith("no GPU work in this trace"));
}

TEST(FindingsTest, AFileThatIsCutOffLeadsWithThat) {
    TraceMaker maker;
    maker.op("aten::mm", 0, 100);
    maker.op("aten::mm", 5'000'000, 100);
    std::string text = maker.text();
    Diagnosis diagnosis = diagnose_trace(parse_trace(text.substr(0, text.size() - 3), "t.json"));
    EXPECT_TRUE(diagnosis.truncated);
    EXPECT_TRUE(diagnosis.verdict.starts_with("the file ends in the middle")) << diagnosis.verdict;
    EXPECT_TRUE(diagnosis.shown(5, false).empty());
    EXPECT_EQ(diagnosis.total.likely, 1.0);
    for (const Finding& finding : diagnosis.findings)
        EXPECT_EQ(finding.confidence, Confidence::low) << finding.id;
}

TEST(FindingsTest, LooksAtTheHostOfACpuTrace) {
    TraceMaker maker;
    for (int i = 0; i < 3; ++i) {
        int at = i * 10'000;
        maker.step(i, at, 10'000);
        maker.host("python_function", "train.py(40): prepare", at, 4000);
        maker.host("user_annotation", "Optimizer.step#SGD.step", at + 4000, 6000);
        for (int k = 0; k < 60; ++k) maker.op("aten::add_", at + 4010 + k * 90, 80);
        maker.host("user_annotation", "Optimizer.zero_grad#SGD.zero_grad", at + 9800, 150);
        for (int k = 0; k < 12; ++k) maker.op("aten::zero_", at + 9801 + k * 10, 8);
    }
    Diagnosis diagnosis = diagnose_trace(maker.trace());
    ASSERT_NE(find(diagnosis, "F11"), nullptr);
    EXPECT_NEAR(find(diagnosis, "F11")->share_percent, 40, 1);
    EXPECT_EQ(find(diagnosis, "F11")->examples.at(0).text, "train.py(40): prepare (12.0 ms)");
    ASSERT_NE(find(diagnosis, "F13"), nullptr);
    ASSERT_NE(find(diagnosis, "F14"), nullptr);
    EXPECT_EQ(find(diagnosis, "F14")->count, 36);
}

TEST(FindingsTest, JudgesATraceOfGpuEventsAloneWithAWarning) {
    TraceMaker maker;
    for (int i = 0; i < 4; ++i) maker.gpu("kernel", "k", i * 100, 50, i + 1);
    Diagnosis diagnosis = diagnose_trace(maker.trace());
    EXPECT_NEAR(*diagnosis.busy_percent, 57.1, 0.1);
    EXPECT_NEAR(diagnosis.split.unknown, 42.9, 0.1);
    EXPECT_THAT(diagnosis.health,
                testing::Contains(testing::Field(
                    &HealthNote::text,
                    "100 % of the GPU events have no launch: their waits cannot be explained")));
}

TEST(RanksTest, TheRankThatIsShortestInItsCollectivesIsLate) {
    std::vector<Trace> traces;
    for (int rank = 0; rank < 3; ++rank) {
        TraceMaker maker;
        maker.rank(rank, 3);
        maker.step(0, 0, 10'000);
        for (int k = 0; k < 10; ++k) {
            int end = k * 1000 + 1000, length = rank == 1 ? 100 : 700;
            maker.kernel("ncclDevKernel_AllReduce", k * 1000, end - length, length);
        }
        traces.push_back(maker.trace());
    }
    Diagnosis diagnosis = diagnose_traces(traces);
    ASSERT_TRUE(diagnosis.ranks);
    EXPECT_THAT(diagnosis.ranks->late, testing::ElementsAre(1));
    EXPECT_EQ(diagnosis.ranks->transfer_ns, 10 * 100'000);
    EXPECT_EQ(diagnosis.ranks->wait_ns, 2 * 10 * 600'000 / 3);
    ASSERT_NE(find(diagnosis, "F17"), nullptr);
}

// Twelve collectives that take the same time on both ranks. One rank starts up before the first of
// them, the other one behind it.
TEST(RanksTest, CollectivesArePairedFromTheStartOfTheTrace) {
    std::vector<Trace> traces;
    for (int rank = 0; rank < 2; ++rank) {
        TraceMaker maker;
        maker.rank(rank, 2);
        int now = 0;
        for (int k = 0; k < 12; ++k) {
            if (k == rank) {
                int id = maker.next_id();
                maker.op("aten::relu", now, 30'000);
                maker.call("cudaLaunchKernel", now, 30'000, id);
                maker.gpu("kernel", "other", now + 30'000, 10, id);
                now += 30'020;
            }
            int length = k % 2 ? 100 : 4000;
            maker.op("c10d::allreduce_", now, 10);
            maker.kernel("ncclDevKernel_AllReduce", now, now + 10, length);
            now += length + 20;
        }
        traces.push_back(maker.trace());
    }
    Diagnosis diagnosis = diagnose_traces(traces);
    ASSERT_TRUE(diagnosis.ranks);
    EXPECT_TRUE(diagnosis.ranks->late.empty());
    EXPECT_EQ(diagnosis.ranks->wait_ns, 0);
    EXPECT_EQ(diagnosis.ranks->collectives, 11u);  // the first is in the start-up of one rank
    EXPECT_EQ(diagnosis.ranks->transfer_ns, (6 * 100 + 5 * 4000) * 1000);
    ASSERT_NE(find(diagnosis, "F15"), nullptr);
    EXPECT_THAT(find(diagnosis, "F15")->evidence,
                testing::EndsWith("over 2 ranks 21 ms of it are transfer and 0 ms waiting for "
                                  "another rank"));
}

TEST(RanksTest, OneCollectiveMakesNoRankLate) {
    std::vector<Trace> traces;
    for (int rank = 0; rank < 2; ++rank) {
        TraceMaker maker;
        maker.rank(rank, 2);
        maker.step(0, 0, 2000);
        maker.kernel("k", 0, 10, 400);
        maker.kernel("ncclDevKernel_AllReduce", 10, rank ? 1900 : 1000, rank ? 100 : 1000);
        maker.kernel("k", 20, 2000, 400);
        traces.push_back(maker.trace());
    }
    Diagnosis diagnosis = diagnose_traces(traces);
    ASSERT_TRUE(diagnosis.ranks);
    EXPECT_TRUE(diagnosis.ranks->late.empty());
    EXPECT_EQ(find(diagnosis, "F17"), nullptr);
}

TEST(RanksTest, WarnsOfRanksOfDifferentRuns) {
    std::vector<Trace> traces;
    for (int i = 0; i < 2; ++i) {
        TraceMaker maker;
        maker.rank(0, 2 + i);
        maker.step(0, 0, 100);
        maker.kernel("k", 0, 10, 50);
        traces.push_back(maker.trace());
    }
    Diagnosis diagnosis = diagnose_traces(traces);
    EXPECT_THAT(diagnosis.health,
                testing::Contains(testing::Field(
                    &HealthNote::text,
                    "rank 0 appears twice: the files seem to come from different runs")));
}

TEST(VerdictTest, NamesTwoCausesThatAreAboutAsLarge) {
    Diagnosis diagnosis;
    diagnosis.busy_percent = 20;
    diagnosis.findings = {
        {.id = "F10", .share_percent = 38, .gain = {1.2, 1.5, 1.6}},
        {.id = "F11", .share_percent = 40, .gain = {1.1, 1.4, 1.5}},
    };
    EXPECT_EQ(verdict_of(diagnosis),
              "the GPU is busy 20.0 % of the time; biggest causes: python between operators, 40 %, "
              "and launch bound, 38 % of the recorded time; fix first: launch bound");
    diagnosis.findings[0].share_percent = 25;
    EXPECT_THAT(verdict_of(diagnosis),
                testing::HasSubstr("biggest cause: python between operators, 40 % of"));
}

// The launches of a profiler that saw no GPU: what the host does between them says nothing.
TEST(DiagnosisTest, LaunchesWithoutTheirWorkCannotBeJudged) {
    TraceMaker maker;
    for (int i = 0; i < 20; ++i) {
        maker.op("aten::mm", i * 100, 40);
        maker.call("cudaLaunchKernel", i * 100 + 10, 5, i + 1);
    }
    Diagnosis diagnosis = diagnose_trace(maker.trace());
    EXPECT_THAT(diagnosis.verdict,
                testing::StartsWith("cannot say: the host starts work on the GPU 20 times"));
    EXPECT_TRUE(diagnosis.shown(9, false).empty());
    EXPECT_EQ(diagnosis.total.likely, 1.0);
}

// One pass that asks for memory all along and gives none back.
TEST(DiagnosisTest, ACacheThatFillsUpIsNoChurn) {
    TraceMaker maker;
    for (int i = 0; i < 40; ++i) {
        maker.op("aten::mm", i * 1000, 300);
        maker.call("cudaMalloc", i * 1000 + 10, 200);
        maker.kernel("k", i * 1000 + 220, i * 1000 + 230, 780);
    }
    Diagnosis diagnosis = diagnose_trace(maker.trace());
    const Finding* churn = find(diagnosis, "F09");
    ASSERT_NE(churn, nullptr);
    EXPECT_TRUE(churn->optional);
    EXPECT_THAT(churn->evidence, testing::EndsWith("the cache is filling up"));
}

TEST(KernelsTest, TellsClassesByName) {
    EXPECT_EQ(classify_kernel("ncclKernel_AllReduce_RING"), KernelClass::communication);
    EXPECT_EQ(classify_kernel("volta_sgemm_64x64_nt"), KernelClass::matrix_fp32);
    EXPECT_EQ(classify_kernel("sm80_xmma_fprop_implicit_gemm_tf32f32_f32"),
              KernelClass::matrix_tensor);
    EXPECT_EQ(classify_kernel("ampere_bf16_s16816gemm_bf16_128x256"), KernelClass::matrix_tensor);
    EXPECT_EQ(classify_kernel("void cudnn::nchwToNhwcKernel<float>"), KernelClass::layout);
    EXPECT_EQ(classify_kernel("softmax_warp_forward"), KernelClass::softmax);
    EXPECT_TRUE(is_synchronising("cudaStreamSynchronize"));
    EXPECT_FALSE(is_synchronising("cudaMemcpyAsync"));
    EXPECT_TRUE(is_allocating("hipFree"));
    EXPECT_FALSE(is_allocating("cudaMallocAsync"));
}

TEST(FindingTest, OneFindingFromTwoSourcesIsOneWithMoreEvidence) {
    Finding a{.id = "F01", .evidence = "seen in the trace", .gain = {1.1, 1.2, 1.3}};
    Finding b{.id = "F01",
              .evidence = "seen in the record",
              .gain = {1.1, 1.1, 1.3},
              .sources = {"run record"}};
    std::vector<Finding> out = merged({a, b});
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].evidence, "seen in the trace; seen in the record");
    EXPECT_EQ(out[0].sources, (std::vector<std::string>{"trace", "run record"}));
    EXPECT_EQ(out[0].confidence, Confidence::high);
}

TEST(FindingTest, TwoFaultsOfOneIdFromOneSourceStayTwo) {
    Finding a{.id = "F26", .evidence = "a bias", .fix = "bias=False"};
    Finding b{.id = "F26", .evidence = "filled on the CPU", .fix = "device=device"};
    std::vector<Finding> out = merged({a, b});
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(out[0].confidence, Confidence::medium);
    EXPECT_EQ(out[1].fix, "device=device");
    Finding c{.id = "F32", .fix = "amp: bf16", .sources = {"configuration"}};
    Finding d{.id = "F32", .fix = "compile: true", .sources = {"run record"}};
    EXPECT_EQ(merged({c, d}).size(), 2u);
}

TEST(RunFindingsTest, SeesInputWaitInTheStepsOfARecord) {
    RunRecord record;
    for (int i = 0; i < 10; ++i) {
        StepRecord step;
        step.step = i;
        step.duration_ns = 1'000'000;
        step.input_wait_ns = 400'000;
        record.steps.push_back(step);
    }
    Diagnosis diagnosis = diagnose_run(record, "run");
    ASSERT_NE(find(diagnosis, "F01"), nullptr);
    EXPECT_DOUBLE_EQ(find(diagnosis, "F01")->share_percent, 40);
    EXPECT_NEAR(find(diagnosis, "F01")->gain.high, 1.667, 0.001);
}

TEST(ConfigFindingsTest, SeesWorkersThatAreNotThere) {
    Document document =
        Document::parse("batch_size: 32\nnum_workers: 0\npin_memory: false\n", "job.yaml");
    Diagnosis diagnosis = diagnose_config(document, Facts{.cores = 8});
    ASSERT_NE(find(diagnosis, "F02"), nullptr);
    EXPECT_EQ(find(diagnosis, "F02")->evidence,
              "job.yaml:2:14: the loader runs in the training process (0 workers)");
    ASSERT_NE(find(diagnosis, "F03"), nullptr);
}

TEST(RunFindingsTest, ADeviceThatIdlesWhileTheHostWaitsForNothingIsLaunchBound) {
    RunRecord record;
    for (int i = 0; i < 50; ++i)
        record.steps.push_back({.step = i,
                                .duration_ns = 1'000'000,
                                .input_wait_ns = 20'000,
                                .device_busy_ns = 350'000});
    Diagnosis diagnosis = diagnose_run(record, "run");
    ASSERT_NE(find(diagnosis, "F10"), nullptr);
    EXPECT_NEAR(find(diagnosis, "F10")->share_percent, 63, 1e-9);
    EXPECT_EQ(find(diagnosis, "F10")->assumes,
              "batches stay as they are: larger ones may gain more");
    // Of 63 %, nothing is left by a captured step of `train`, and 15 % of the gain by others' fixes.
    EXPECT_NEAR(find(diagnosis, "F10")->gain.high, 1 / 0.37, 1e-9);
    EXPECT_NEAR(find(diagnosis, "F10")->gain.likely, 1 + 0.85 * (1 / 0.37 - 1), 1e-9);
    record.info.kind = "train";
    diagnosis = diagnose_run(record, "run");
    EXPECT_NEAR(find(diagnosis, "F10")->gain.likely, 1 / 0.37, 1e-9);
    record.info.world_size = 2;  // whose steps are not captured
    diagnosis = diagnose_run(record, "run");
    EXPECT_NEAR(find(diagnosis, "F10")->gain.likely, 1 + 0.85 * (1 / 0.37 - 1), 1e-9);
    record.info = {};
    for (StepRecord& step : record.steps) step.input_wait_ns = 600'000;
    EXPECT_EQ(find(diagnose_run(record, "run"), "F10"), nullptr) << "it waits for data";
    for (StepRecord& step : record.steps) step.input_wait_ns = 20'000;
    record.steps.back().device_busy_ns.reset();
    EXPECT_EQ(find(diagnose_run(record, "run"), "F10"), nullptr) << "not known";
}

// As on a busy machine: one step in ten is kept waiting for a core. Launching cannot gain that back.
TEST(RunFindingsTest, StepsThatAreHeldUpAreNotLaunchBound) {
    RunRecord record;
    for (int i = 0; i < 200; ++i)
        record.steps.push_back({.step = i,
                                .duration_ns = i % 10 == 3 ? 20'000'000 : 1'000'000,
                                .device_busy_ns = 700'000});
    EXPECT_EQ(find(diagnose_run(record, "run"), "F10"), nullptr);
    for (StepRecord& step : record.steps) step.device_busy_ns = 100'000;
    Diagnosis diagnosis = diagnose_run(record, "run");
    const Finding* found = find(diagnosis, "F10");
    ASSERT_NE(found, nullptr);
    EXPECT_NEAR(found->ms_per_step, 0.9, 0.01);
    EXPECT_LT(diagnosis.total.high, 1.5);  // of a mean of 2.9 ms
}

// A host that launches faster is ahead of the device: then it costs nothing to be held up shortly.
TEST(RunFindingsTest, ShortStopsMayGoWithTheLaunching) {
    RunRecord record;
    for (int i = 0; i < 200; ++i)
        record.steps.push_back({.step = i,
                                .duration_ns = i % 10 == 3 ? 1'500'000 : 1'000'000,
                                .device_busy_ns = 400'000});
    Diagnosis diagnosis = diagnose_run(record, "run");
    ASSERT_NE(find(diagnosis, "F10"), nullptr);
    EXPECT_NEAR(find(diagnosis, "F10")->gain.high, 1.05 / 0.4, 0.02);
}

// Most of the time is lost to something that the record does not show. Naming only the small cause
// that it does show would mislead.
TEST(RunFindingsTest, StepsThatAreHeldUpAreTheBiggestCause) {
    RunRecord record;
    for (int i = 0; i < 200; ++i)
        record.steps.push_back({.step = i,
                                .duration_ns = i % 10 == 3 ? 20'000'000 : 1'000'000,
                                .input_wait_ns = 200'000,
                                .device_busy_ns = 700'000});
    Diagnosis diagnosis = diagnose_run(record, "run");
    EXPECT_THAT(diagnosis.verdict,
                testing::HasSubstr("biggest cause: host, nothing recorded, 59 % of the step time, "
                                   "which no finding explains; then waiting for data, 7 %"));
    ASSERT_EQ(diagnosis.idle.size(), 2u);
    EXPECT_EQ(diagnosis.idle[0].first, Cause::host);
    EXPECT_THAT(diagnosis.health.back().text,
                testing::HasSubstr("single steps that take much longer than the usual 1.00 ms"));
    for (StepRecord& step : record.steps) step.duration_ns = 1'000'000;
    EXPECT_EQ(diagnose_run(record, "run").idle.size(), 1u);
}

// A GPU's steps do not tell how long it worked; the driver's counter does.
TEST(RunFindingsTest, AGpuThatIdlesByTheDriversCounterIsLaunchBound) {
    RunRecord record{.info = {.kind = "train", .device = "cuda:0"}};
    constexpr std::int64_t kSecond = 1'000'000'000;
    for (int i = 0; i < 1200; ++i)
        record.steps.push_back(
            {.step = i, .start_ns = i * kSecond / 100, .duration_ns = kSecond / 100});
    for (int i = 0; i < 12; ++i)
        record.devices.push_back(
            {.gpu = 2, .time_ns = i * kSecond, .utilization_percent = i == 0 ? 0.0 : 40.0});
    Diagnosis diagnosis = diagnose_run(record, "run");
    const Finding* found = find(diagnosis, "F10");
    ASSERT_NE(found, nullptr);
    EXPECT_NEAR(found->share_percent, 60, 0.5);
    EXPECT_THAT(found->evidence, testing::HasSubstr("by the driver's counter"));
    for (DeviceSample& sample : record.devices) sample.utilization_percent = 97;
    EXPECT_EQ(find(diagnose_run(record, "run"), "F10"), nullptr) << "it is busy";
    for (DeviceSample& sample : record.devices) sample.utilization_percent = 40;
    record.devices.back().gpu = 3;
    EXPECT_EQ(find(diagnose_run(record, "run"), "F10"), nullptr)
        << "whose counter it is, is unknown";
    record.devices.resize(4);
    EXPECT_EQ(find(diagnose_run(record, "run"), "F10"), nullptr) << "too few readings";
}

TEST(DiagnosisTest, AWaitThatABusyDeviceHidesIsNoLoss) {
    RunRecord record;
    for (int i = 0; i < 30; ++i) {
        record.steps.push_back({.step = i,
                                .start_ns = i * 10'000'000LL,
                                .duration_ns = 10'000'000,
                                .input_wait_ns = 6'000'000});
        record.steps.back().device_busy_ns = 10'100'000;
    }
    Diagnosis busy = diagnose_run(record, "run");
    EXPECT_EQ(busy.verdict, "the device is busy 100.0 %; the record shows no cause above 3 %");
    for (StepRecord& step : record.steps) step.device_busy_ns = 8'000'000;
    Diagnosis idle = diagnose_run(record, "run");
    EXPECT_EQ(
        idle.verdict,
        "the device is busy 80.0 %; biggest cause: waiting for data, 20 % of the step time; the "
        "fixes below would make a step about 1.21 times as fast");
}

}  // namespace
}  // namespace saturate
