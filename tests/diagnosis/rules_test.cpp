// SPDX-License-Identifier: Apache-2.0
// For each rule that the other tests do not meet: the smallest trace or record in which it fires,
// and a near miss in which it must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "diagnosis/diagnosis.h"
#include "trace_maker.h"

namespace saturate {
namespace {

const Finding* find(const Diagnosis& diagnosis, std::string_view id) {
    for (const Finding& finding : diagnosis.findings) {
        if (finding.id == id) return &finding;
    }
    return nullptr;
}

std::string ids(const Diagnosis& diagnosis) {
    std::string out;
    for (const Finding& finding : diagnosis.findings) out += finding.id + " ";
    return out;
}

// EXPECT that a rule fires or not, with what was found instead.
testing::AssertionResult fires(const Diagnosis& diagnosis, std::string_view id) {
    if (find(diagnosis, id)) return testing::AssertionSuccess() << id << " fired";
    return testing::AssertionFailure() << id << " is not among: " << ids(diagnosis);
}

testing::AssertionResult fires(const TraceMaker& maker, std::string_view id) {
    return fires(diagnose_trace(maker.trace()), id);
}

// Four steps of which the host is done at once: the GPU sets the pace. Each is a copy of 200 us and
// a kernel of 700; on another stream the copy of the next step runs beside the kernel.
TraceMaker with_copies(int copy_stream) {
    TraceMaker maker;
    for (int i = 0; i < 4; ++i) {
        int launch = i * 20, at = 100 + i * (copy_stream == 7 ? 900 : 700);
        maker.step(i, launch, 20);
        maker.copy("Memcpy HtoD (Pinned -> Device)", launch + 1, at, 200, copy_stream);
        maker.kernel("gemm", launch + 10, copy_stream == 7 ? at + 200 : at + 201, 699);
    }
    return maker;
}

TEST(RulesTest, F04CopiesOnTheStreamThatComputes) {
    Diagnosis diagnosis = diagnose_trace(with_copies(7).trace());
    ASSERT_TRUE(fires(diagnosis, "F04"));
    EXPECT_NEAR(find(diagnosis, "F04")->share_percent, 22, 1);
    EXPECT_NEAR(find(diagnosis, "F04")->gain.likely, 1.27, 0.02);
    // Three of the four copies run beside a kernel.
    Diagnosis beside = diagnose_trace(with_copies(8).trace());
    EXPECT_TRUE(!fires(beside, "F04") || find(beside, "F04")->share_percent < 8) << ids(beside);
}

// Parameters that are sent in every step: hidden behind little work, most of the copying stays.
TEST(RulesTest, F04CopiesThatTakeLongerThanTheWork) {
    TraceMaker maker;
    for (int i = 0; i < 10; ++i) {
        maker.copy("Memcpy HtoD (Pinned -> Device)", i * 20, 100 + i * 1'000, 950);
        maker.kernel("gemm", i * 20 + 10, 1'050 + i * 1'000, 50);
    }
    Diagnosis diagnosis = diagnose_trace(maker.trace());
    ASSERT_TRUE(fires(diagnosis, "F04"));
    EXPECT_NEAR(find(diagnosis, "F04")->gain.likely, 1.06, 0.01);
    EXPECT_NEAR(diagnosis.total.likely, 1.06, 0.01);
    EXPECT_THAT(find(diagnosis, "F04")->fix_text(), testing::StartsWith("copy less"));
}

// A kernel of 500 us, the host waits for it, then needs 300 us until the next launch.
TEST(RulesTest, F07WaitsThatNobodyNeeds) {
    TraceMaker waits, last_only;
    for (int i = 0; i < 5; ++i) {
        int at = i * 820;
        waits.step(i, at, 820);
        waits.kernel("gemm", at, at + 10, 500);
        waits.call("cudaDeviceSynchronize", at + 6, 506);
        waits.op("aten::add", at + 515, 300);
        last_only.step(i, i * 320, 320);
        last_only.kernel("gemm", i * 320, 10 + i * 500, 500);
        last_only.op("aten::add", i * 320 + 10, 300);
    }
    last_only.call("cudaDeviceSynchronize", 1595, 920);
    Diagnosis diagnosis = diagnose_trace(waits.trace());
    ASSERT_TRUE(fires(diagnosis, "F07"));
    EXPECT_EQ(find(diagnosis, "F07")->count, 4);  // the last is the profiler's own
    EXPECT_GT(find(diagnosis, "F07")->gain.likely, 1.3);
    EXPECT_FALSE(fires(last_only, "F07"));
}

TraceMaker kernels_of(int length) {
    TraceMaker maker;
    maker.step(0, 0, 200 * (length + 12));
    for (int i = 0; i < 200; ++i) {
        int at = i * (length + 12);
        maker.op("aten::add", at, 11);
        maker.kernel("elementwise", at + 5, at + 12, length);
    }
    return maker;
}

TEST(RulesTest, F12KernelsThatEndBeforeTheNextIsLaunched) {
    EXPECT_TRUE(fires(kernels_of(3), "F12"));
    EXPECT_FALSE(fires(kernels_of(12), "F12"));
}

TraceMaker collectives(int per_step, int length) {
    TraceMaker maker;
    for (int i = 0; i < 3; ++i) {
        int at = i * per_step * (length + 80);
        maker.step(i, at, per_step * (length + 80));
        for (int k = 0; k < per_step; ++k) {
            int start = at + k * (length + 80);
            maker.op("c10d::allreduce_", start, 70);
            maker.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", start + 60, start + 80, length);
        }
    }
    return maker;
}

TEST(RulesTest, F16OneSmallCollectivePerParameter) {
    Diagnosis diagnosis = diagnose_trace(collectives(60, 20).trace());
    ASSERT_TRUE(fires(diagnosis, "F16"));
    EXPECT_EQ(find(diagnosis, "F16")->count, 180);
    EXPECT_GT(find(diagnosis, "F16")->gain.likely, 2);
    EXPECT_FALSE(fires(collectives(40, 20), "F16"));
    EXPECT_FALSE(fires(collectives(60, 150), "F16"));
}

// Matrix products of the given shape, back to back on the GPU.
TraceMaker products(std::string_view dims, std::string_view type) {
    TraceMaker maker;
    for (int i = 0; i < 10; ++i) {
        std::string args =
            fmt::format(R"("External id":{},"Input Dims":{},"Input type":["{}","{}"])", i + 1, dims,
                        type, type);
        maker.op("aten::mm", i * 10, 9, args);
        int id = maker.next_id();
        maker.host("cuda_runtime", "cudaLaunchKernel", i * 10 + 2, 5, 1,
                   fmt::format(R"("correlation":{},"External id":{})", id, i + 1));
        maker.gpu("kernel", "ampere_fp16_s16816gemm_fp16_128x128", 10 + i * 500, 500, id);
    }
    return maker;
}

TEST(RulesTest, F21HalfPrecisionWithAnOddDimension) {
    Diagnosis diagnosis = diagnose_trace(products("[[64,1000],[1000,513]]", "c10::Half").trace());
    ASSERT_TRUE(fires(diagnosis, "F21"));
    EXPECT_EQ(find(diagnosis, "F21")->count, 10);
    EXPECT_NEAR(find(diagnosis, "F21")->gain.likely, 1.43, 0.02);
    EXPECT_FALSE(fires(products("[[64,1000],[1000,512]]", "c10::Half"), "F21"));
    EXPECT_FALSE(fires(products("[[64,1000],[1000,513]]", "float"), "F21"));
}

// Products of 500 us, an element-wise copy behind each.
TraceMaker with_copy_kernels(int length) {
    TraceMaker maker;
    for (int i = 0; i < 5; ++i) {
        int at = 20 + i * (500 + length);
        maker.kernel("ampere_sgemm", i * 20, at, 500);
        maker.kernel("void at::native::elementwise_kernel<direct_copy_kernel_cuda>", i * 20 + 10,
                     at + 500, length);
    }
    return maker;
}

TEST(RulesTest, F22CopiesThatTakeMuchOfTheKernelTime) {
    Diagnosis diagnosis = diagnose_trace(with_copy_kernels(100).trace());
    ASSERT_TRUE(fires(diagnosis, "F22"));
    EXPECT_TRUE(find(diagnosis, "F22")->optional);  // casts of mixed precision are copies too
    EXPECT_FALSE(fires(with_copy_kernels(20), "F22"));
}

// In each of four steps the host spends 400 us in a frame while the GPU is idle.
TraceMaker with_frame(std::string_view frame) {
    TraceMaker maker;
    for (int i = 0; i < 4; ++i) {
        maker.step(i, i * 1000, 1000);
        maker.host("python_function", frame, i * 1000 + 5, 400);
        maker.kernel("gemm", i * 1000 + 410, i * 1000 + 420, 580);
    }
    return maker;
}

TEST(RulesTest, F23SavingInTheLoopButNotActivationCheckpoints) {
    EXPECT_TRUE(fires(with_frame("torch/serialization.py(900): save"), "F23"));
    EXPECT_TRUE(fires(with_frame("train.py(80): evaluate"), "F23"));
    EXPECT_FALSE(fires(with_frame("torch/utils/checkpoint.py(450): checkpoint"), "F23"));
    EXPECT_FALSE(fires(with_frame("evaluate.py(80): forward"), "F23"));
}

TraceMaker with_module_load(int step) {
    TraceMaker maker;
    for (int i = 0; i < 4; ++i) {
        maker.step(i, i * 1000, 1000);
        if (i == step) maker.call("cuModuleLoadData", i * 1000 + 5, 400);
        maker.kernel("gemm", i * 1000 + 410, i * 1000 + 420, 580);
    }
    return maker;
}

TEST(RulesTest, F24LoadingAModuleAfterTheFirstStep) {
    EXPECT_TRUE(fires(with_module_load(2), "F24"));
    EXPECT_FALSE(fires(with_module_load(0), "F24"));
}

TraceMaker with_blocks(int blocks) {
    TraceMaker maker;
    maker.device("NVIDIA A100-SXM4-40GB", 8, 108);
    for (int i = 0; i < 4; ++i) maker.kernel("gemm", i * 20, 20 + i * 500, 500, blocks);
    return maker;
}

TEST(RulesTest, F25FewerBlocksThanMultiprocessors) {
    Diagnosis diagnosis = diagnose_trace(with_blocks(27).trace());
    ASSERT_TRUE(fires(diagnosis, "F25"));
    EXPECT_NEAR(find(diagnosis, "F25")->gain.high, 3.9, 0.1);
    EXPECT_FALSE(fires(with_blocks(108), "F25"));
}

TraceMaker convolution(std::string_view bias, std::string_view next) {
    TraceMaker maker;
    maker.op("aten::conv2d", 0, 50,
             fmt::format(R"("Input Dims":[[8,3,32,32],[16,3,3,3],{}])", bias));
    maker.op(next, 60, 30);
    return maker;
}

TEST(RulesTest, F26BiasThatABatchNormTakesAway) {
    EXPECT_TRUE(fires(convolution("[16]", "aten::batch_norm"), "F26"));
    EXPECT_FALSE(fires(convolution("[]", "aten::batch_norm"), "F26"));
    EXPECT_FALSE(fires(convolution("[16]", "aten::relu"), "F26"));
}

// The host makes a tensor and moves it, 300 us in all; the GPU works 700 us per step.
TraceMaker moved(std::string_view made_by) {
    TraceMaker maker;
    for (int i = 0; i < 4; ++i) {
        int at = i * 1000;
        maker.step(i, at, 1000);
        maker.op(made_by, at, 100);
        maker.op("aten::to", at + 110, 190);
        int id = maker.next_id();
        maker.call("cudaMemcpyAsync", at + 120, 170, id);
        maker.gpu("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at + 130, 150, id);
        maker.kernel("gemm", at + 300, at + 310, 680);
    }
    return maker;
}

TEST(RulesTest, F26TensorsFilledOnTheHostAndMoved) {
    Diagnosis diagnosis = diagnose_trace(moved("aten::zeros").trace());
    ASSERT_TRUE(fires(diagnosis, "F26"));
    EXPECT_EQ(find(diagnosis, "F26")->count, 4);
    EXPECT_FALSE(fires(moved("aten::stack"), "F26"));
}

TraceMaker on_two_devices(std::string_view frame) {
    TraceMaker maker;
    maker.host("python_function", frame, 0, 900);
    for (int i = 0; i < 2; ++i) {
        int id = maker.next_id();
        maker.call("cudaLaunchKernel", 10 + i * 10, 5, id);
        maker.gpu("kernel", "gemm", 30, 500, id, 7, i);
    }
    return maker;
}

// Filling is the host's work, and the GPU waits for it.
TEST(RulesTest, F26FillingCountsWithTheMove) {
    TraceMaker made;
    for (int i = 0; i < 4; ++i) {
        int at = 20'000 * i;
        made.step(i + 1, at, 20'000);
        made.op("aten::randn", at + 10, 9'000);
        made.op("aten::to", at + 9'020, 1'000);
        made.call("cudaMemcpyAsync", at + 9'050, 900, made.next_id());
        int id = made.next_id() - 1;
        made.gpu("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at + 9'060, 800, id);
        made.op("aten::mm", at + 10'100, 100);
        made.kernel("ampere_sgemm_128x64_tn", at + 10'120, at + 10'140, 9'000);
    }
    Diagnosis diagnosis = diagnose_trace(made.trace());
    const Finding* moved = find(diagnosis, "F26");
    ASSERT_NE(moved, nullptr);
    EXPECT_NEAR(moved->share_percent, 49, 3);
    EXPECT_FALSE(fires(diagnosis, "F10"));  // the same time, told once
}

// Few long calls are not launching: the first use of an operator, or work on the CPU.
TEST(RulesTest, F10NeedsManyLaunches) {
    TraceMaker few, many;
    few.op("aten::mm", 0, 2'100);
    few.kernel("gemm", 2'080, 2'110, 20);
    for (int i = 0; i < 4; ++i) {
        few.op("aten::mm", 2'150 + 60 * i, 50);
        few.kernel("gemm", 2'180 + 60 * i, 2'190 + 60 * i, 15);
    }
    for (int i = 0; i < 100; ++i) {
        many.op("aten::mm", 50 * i, 45);
        many.kernel("gemm", 50 * i + 30, 50 * i + 40, 5);
    }
    Diagnosis quiet = diagnose_trace(few.trace());
    for (const Finding& finding : quiet.shown(9, false)) {
        EXPECT_NE(finding.id, "F10") << quiet.verdict;
        EXPECT_NE(finding.id, "F27");
    }
    EXPECT_TRUE(fires(many, "F10"));
}

// Sixty element-wise kernels; then, if so, a collective.
TraceMaker element_wise(bool alternates, int kernel_us, int peers_us) {
    TraceMaker made;
    made.device("NVIDIA A100-SXM4-80GB", 8, 108);
    int at = 10;
    for (int i = 0; i < 60; ++i) {
        made.op("aten::mul", 20 * i, 15);
        made.kernel(alternates && i % 2 ? "vectorized_elementwise_kernel<4, AddFunctor>"
                                        : "vectorized_elementwise_kernel<4, MulFunctor>",
                    20 * i + 5, std::max(at, 20 * i + 8), kernel_us);
        at = std::max(at, 20 * i + 8) + kernel_us + 1;
    }
    if (peers_us > 0) {
        made.op("c10d::allreduce_", 1'300, 20);
        made.kernel("ncclDevKernel_AllReduce_Sum_f32", 1'305, std::max(at, 1'310), peers_us);
    }
    return made;
}

TEST(RulesTest, F33FusesWhatFollowsOneAnother) {
    Diagnosis chain = diagnose_trace(element_wise(true, 100, 0).trace());
    ASSERT_TRUE(fires(chain, "F33"));
    const Gain& gain = find(chain, "F33")->gain;
    EXPECT_LE(gain.low, gain.likely);
    // A loop over tensors does not become one pass.
    EXPECT_FALSE(fires(element_wise(false, 100, 0), "F33"));
    // Busy, but with waiting for its peers.
    EXPECT_FALSE(fires(element_wise(true, 4, 9'000), "F33"));
}

TEST(RulesTest, F28OneProcessForSeveralDevicesOrTheWrongBackend) {
    EXPECT_TRUE(
        fires(on_two_devices("torch/nn/parallel/data_parallel.py(1): parallel_apply"), "F28"));
    EXPECT_FALSE(fires(on_two_devices("train.py(3): pipeline"), "F28"));
    TraceMaker gloo, nccl;
    gloo.rank(0, 2, "gloo");
    nccl.rank(0, 2, "nccl");
    for (TraceMaker* maker : {&gloo, &nccl}) maker->kernel("gemm", 0, 10, 500);
    EXPECT_TRUE(fires(gloo, "F28"));
    EXPECT_FALSE(fires(nccl, "F28"));
}

RunRecord throttled_for(std::uint64_t percent) {
    RunRecord record;
    for (int i = 0; i <= 10; ++i) {
        DeviceSample sample;
        sample.time_ns = i * 1'000'000'000LL;
        sample.throttle.power_cap_ns = static_cast<std::uint64_t>(i) * percent * 10'000'000;
        record.devices.push_back(sample);
    }
    return record;
}

TEST(RulesTest, F29ThrottledMoreThanAFiftiethOfTheRun) {
    Diagnosis diagnosis = diagnose_run(throttled_for(30), "run");
    ASSERT_TRUE(fires(diagnosis, "F29"));
    EXPECT_EQ(find(diagnosis, "F29")->evidence,
              "GPU 0 was throttled 30 % of the run by its power limit");
    EXPECT_FALSE(fires(diagnose_run(throttled_for(1), "run"), "F29"));
}

RunRecord with_workers(int workers, int running) {
    RunRecord record;
    for (int i = 0; i < 5; ++i) {
        HostSample sample;
        sample.cores = 4;
        sample.running = running;
        sample.tree = TreeSample{};
        sample.tree->loader_workers = workers;
        record.hosts.push_back(sample);
    }
    return record;
}

TEST(RulesTest, F30MoreWorkersThanCoresWithTasksWaiting) {
    Diagnosis diagnosis = diagnose_run(with_workers(16, 12), "run");
    ASSERT_TRUE(fires(diagnosis, "F30"));
    EXPECT_EQ(find(diagnosis, "F30")->evidence,
              "16 loader workers on 4 cores, with tasks waiting for a core in 5 of 5 readings");
    EXPECT_FALSE(fires(diagnose_run(with_workers(16, 3), "run"), "F30"));  // they mostly sleep
    EXPECT_FALSE(fires(diagnose_run(with_workers(3, 12), "run"), "F30"));  // others crowd the cores
    RunRecord shared = with_workers(16, 12);
    for (HostSample& sample : shared.hosts) {
        sample.cpu_percent = 100;
        sample.tree->cpu_percent = 380;
    }
    EXPECT_TRUE(fires(diagnose_run(shared, "run"), "F30"));
    for (HostSample& sample : shared.hosts) sample.tree->cpu_percent = 100;
    EXPECT_FALSE(fires(diagnose_run(shared, "run"), "F30"));  // likewise
}

TEST(RulesTest, F30MoreThreadsThanCores) {
    auto with_threads = [](int threads, const std::string& device) {
        RunRecord record;
        record.python = Json::parse(
            "{\"device\":\"" + device +
                "\",\"flags\":{\"cores\":2,\"threads\":" + std::to_string(threads) + "}}",
            "python.json");
        return diagnose_run(record, "run");
    };
    Diagnosis crowded = with_threads(16, "cpu");
    ASSERT_TRUE(fires(crowded, "F30"));
    EXPECT_EQ(find(crowded, "F30")->evidence, "16 threads compute on 2 cores");
    EXPECT_DOUBLE_EQ(find(crowded, "F30")->gain.likely, 6.0);
    EXPECT_FALSE(fires(with_threads(2, "cpu"), "F30"));
    EXPECT_FALSE(fires(with_threads(16, "cuda:0"), "F30"));
}

RunRecord with_peak(std::uint64_t bytes) {
    RunRecord record;
    record.info.machine =
        Json::parse(R"({"gpus": [{"memory_total_bytes": 80000000000}]})", "machine");
    record.summary = RunSummary{};
    record.summary->memory_peak_bytes = bytes;
    return record;
}

TEST(RulesTest, F31MemoryThatALargerBatchCouldUse) {
    Diagnosis diagnosis = diagnose_run(with_peak(20'000'000'000), "run");
    ASSERT_TRUE(fires(diagnosis, "F31"));
    EXPECT_EQ(find(diagnosis, "F31")->evidence, "the run used 25 % of the GPU's memory at most");
    EXPECT_TRUE(find(diagnosis, "F31")->optional);  // whether it is faster only a trial can tell
    EXPECT_FALSE(fires(diagnose_run(with_peak(50'000'000'000), "run"), "F31"));
}

// GeForce cards reach their peak in half precision, which is twice that of FP32.
TEST(RulesTest, F18CardsWhosePeaksAreTwiceApart) {
    TraceMaker maker;
    maker.device("NVIDIA GeForce RTX 3060", 8, 28);
    for (int i = 0; i < 100; ++i) {
        maker.op("aten::mm", 20 * i, 10);
        maker.kernel("ampere_sgemm_128x64_tn", 20 * i + 2, 30 + 100 * i, 99);
    }
    Diagnosis diagnosis = diagnose_trace(maker.trace());
    ASSERT_TRUE(fires(diagnosis, "F18"));
    EXPECT_NEAR(find(diagnosis, "F18")->gain.likely, 2, 0.1);
}

// The same function of two objects is one.
TEST(RulesTest, F11FramesWithoutAddresses) {
    TraceMaker maker;
    for (int i = 0; i < 100; ++i) {
        int at = 100 * i;
        maker.host("python_function",
                   fmt::format("<built-in method copy_ of Tensor object at 0x7f{:x}>", i), at, 50);
        maker.op("aten::add", at + 60, 35);
        maker.kernel("elementwise", at + 80, at + 90, 8);
    }
    Diagnosis diagnosis = diagnose_trace(maker.trace());
    ASSERT_TRUE(fires(diagnosis, "F11"));
    ASSERT_EQ(find(diagnosis, "F11")->examples.size(), 1u);
    EXPECT_THAT(find(diagnosis, "F11")->examples[0].text,
                testing::StartsWith("<built-in method copy_ of Tensor> (5"));
}

TEST(RulesTest, F26NamesWhatFillsTheTensor) {
    TraceMaker maker;
    for (int i = 0; i < 3; ++i) {
        int at = 10'000 * i;
        maker.step(i, at, 10'000);
        maker.op("aten::randn", at, 3'000);
        maker.op("aten::to", at + 3'010, 500);
        maker.copy("Memcpy HtoD (Pageable -> Device)", at + 3'020, at + 3'030, 400);
        maker.op("aten::mm", at + 3'600, 20);
        maker.kernel("gemm", at + 3'605, at + 3'615, 6'000);
    }
    Diagnosis diagnosis = diagnose_trace(maker.trace());
    ASSERT_TRUE(fires(diagnosis, "F26"));
    EXPECT_THAT(find(diagnosis, "F26")->fix_text(), testing::HasSubstr("torch.randn("));
}

// 12 MB in 10 ms: an A100 would need 8 us for them.
TEST(RulesTest, F33MemoryThatIsNotTheGpus) {
    TraceMaker maker;
    maker.device("NVIDIA A100-SXM4-40GB", 8, 108);
    for (int i = 0; i < 50; ++i) {
        for (int k = 0; k < 2; ++k) {
            int id = maker.next_id(), launch = 40 * i + 20 * k;
            maker.op(k ? "aten::mul" : "aten::add", launch, 10,
                     fmt::format(R"("External id":{},"Input Dims":[[1000,1000],[1000,1000]],)"
                                 R"("Input type":["float","float"])",
                                 id));
            maker.host("cuda_runtime", "cudaLaunchKernel", launch + 2, 5, 1,
                       fmt::format(R"("External id":{},"correlation":{})", id, id));
            maker.gpu("kernel", k ? "mul_elementwise" : "add_elementwise",
                      20 + 20'000 * i + 10'000 * k, 9'999, id);
        }
    }
    Diagnosis diagnosis = diagnose_trace(maker.trace());
    ASSERT_TRUE(fires(diagnosis, "F33"));
    EXPECT_THAT(find(diagnosis, "F33")->evidence, testing::HasSubstr("1 GB/s of the GPU's 1555"));
    EXPECT_THAT(find(diagnosis, "F33")->surer, testing::HasSubstr("memory may be full"));
}

}  // namespace
}  // namespace saturate
