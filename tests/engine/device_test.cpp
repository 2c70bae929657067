// SPDX-License-Identifier: Apache-2.0
// The seam to the device: what every device must keep to, on the CPU, the simulated one and a fake
// one that captures.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "engine/fake_device.h"
#include "engine/seed.h"
#include "engine/selftest.h"
#include "engine/sim_backend.h"
#include "ranks.h"
#include "small_job.h"
#include "support/run.h"

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&saturate::take_down>());
}

namespace saturate {
namespace {

using testing::HasSubstr;

std::unique_ptr<DeviceBackend> open_for_test(const std::string& name) {
    if (name == "cpu") return make_cpu_backend({.threads = 1}, false);
    if (name == "fake") return std::make_unique<FakeDevice>();
    return make_sim_backend("RTX 4090", {});
}

class DeviceTest : public testing::TestWithParam<const char*> {
  protected:
    std::unique_ptr<DeviceBackend> device_ = open_for_test(GetParam());

    // A step's worth of work, in a way that each device counts.
    void work() {
        if (SimulatedStep* simulated = device_->simulated()) {
            if (!simulated->is_counted()) simulated->set_cost({}, {});
            simulated->launch(1);
        } else {
            (void)torch::ones({64, 64}).matmul(torch::ones({64, 64}));
        }
    }
};

TEST_P(DeviceTest, ABatchIsThereOnceItIsAwaited) {
    static const FieldSpec kSpec{.name = "x", .element = Element::float32, .shape = {2}};
    auto memory = device_->slab_memory() ? device_->slab_memory() : ordinary_memory();
    auto* data = static_cast<float*>(memory->allocate(64));
    std::shared_ptr<void> slab(data, [memory](void* held) { memory->release(held, 64); });
    std::iota(data, data + 6, 1.0F);
    FieldView field{&kSpec, reinterpret_cast<std::byte*>(data)};
    Upload upload = device_->start_upload({.size = 3, .fields = {&field, 1}, .slab = slab});
    device_->await_upload(upload);
    device_->synchronise();
    EXPECT_TRUE(
        torch::equal(upload.tensors.at(0), torch::arange(1, 7).view({3, 2}).to(torch::kFloat)));
}

TEST_P(DeviceTest, AReadingIsOfItsTime) {
    torch::Tensor values = torch::ones({3}, device_->device());
    std::unique_ptr<Reading> reading = device_->start_reading(values);
    values.fill_(2);
    EXPECT_TRUE(torch::equal(reading->values(), torch::ones({3})));
}

TEST_P(DeviceTest, TheTimeOfAStepComesAfterItsEnd) {
    EXPECT_FALSE(device_->step_ns(0));
    for (std::int64_t step = 0; step < 4; ++step) {
        device_->mark_begin(step);
        work();
        device_->mark_end(step);
        if (std::string(GetParam()) == "cpu") {
            EXPECT_TRUE(device_->step_ns(step));
        }
    }
    device_->synchronise();
    if (std::string(GetParam()) != "cpu") {
        EXPECT_TRUE(device_->step_ns(0));
    }
    EXPECT_FALSE(device_->step_ns(17));
}

TEST_P(DeviceTest, WorkApartPassesItsErrorAndTheDeviceGoesOn) {
    EXPECT_THROW(device_->run_apart([] { throw std::runtime_error("x"); }), std::runtime_error);
    int ran = 0;
    device_->run_apart([&] { ++ran; });
    EXPECT_EQ(ran, 1);
    EXPECT_FALSE(device_->is_lost());
}

TEST_P(DeviceTest, CapturesExactlyWhenItSaysSo) {
    torch::Tensor x = torch::ones({3}), y;
    auto work = [&] { y = (x * 2).add_(1); };
    if (!device_->proves().capture) {
        EXPECT_THROW((void)device_->capture(work), Bug);
        return;
    }
    auto captured = device_->capture(work);
    torch::Tensor out = y;
    x.fill_(5);
    captured->replay();
    EXPECT_TRUE(torch::equal(out, torch::full({3}, 11.0F)));
}

TEST_P(DeviceTest, ACaptureRunsNothing) {
    if (!device_->proves().capture) GTEST_SKIP() << "captures nothing";
    torch::Tensor x = torch::ones({3});
    auto captured = device_->capture([&] { x.add_(1); });
    EXPECT_TRUE(torch::equal(x, torch::ones({3})));
    EXPECT_ANY_THROW((void)device_->capture([&] {
        x.add_(1);
        (void)x.sum().item();
    }));
    EXPECT_TRUE(torch::equal(x, torch::ones({3})));
    captured->replay();
    captured->replay();
    EXPECT_TRUE(torch::equal(x, torch::full({3}, 3.0F)));
}

INSTANTIATE_TEST_SUITE_P(All, DeviceTest, testing::Values("cpu", "sim", "fake"),
                         [](const auto& info) { return std::string(info.param); });

// `saturate selftest --device cuda` runs this list on a GPU.
TEST(SelftestTest, TheListPassesOnTheFakeDevice) {
    at::set_num_threads(1);  // on a busy machine threads that wait for each other take minutes
    FakeDevice device;
    device.times_late = 0;
    std::size_t checks = 0;
    for (const SelftestItem& item : selftest_items(device)) {
        SelftestCheck check = run_check(item);
        EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
        ++checks;
    }
    EXPECT_EQ(checks, 27u);
    EXPECT_EQ(device.captures, 10);  // of 11 captured steps one never gets so far
}

TEST(SelftestTest, TheListPassesOnTheCpu) {
    SelftestList list = selftest_cpu();
    EXPECT_EQ(list.items.size(), 31u);
    for (const SelftestItem& item : list.items) {
        SelftestCheck check = run_check(item);
        EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
    }
}

TEST(SelftestTest, WhatACheckThrowsIsACheckThatFailed) {
    SelftestCheck check = run_check(
        {"a name", []() -> SelftestCheck { throw std::runtime_error("no kernel\nat x.cpp"); }});
    EXPECT_FALSE(check.passed);
    EXPECT_EQ(check.name, "a name");
    EXPECT_EQ(check.detail, "it ended with: no kernel");
}

// A device that computes wrongly is found out.
TEST(SelftestTest, AWrongDeviceFails) {
    at::set_num_threads(1);
    FakeDevice device;
    device.times_late = 0;
    device.copies_wrong = true;
    int failed = 0;
    for (const SelftestItem& item : selftest_step_items(device))
        failed += run_check(item).passed ? 0 : 1;
    EXPECT_EQ(failed, 2);  // both uploads
}

// ---- captured steps

struct Course {
    StepSettings step = {};
    SmallJobSettings job = {};
    std::vector<std::vector<std::int64_t>> steps;  // sizes of the batches of each
};

struct Ended {
    std::vector<torch::Tensor> weights;
    std::vector<float> losses;
    std::vector<std::string> notes;
};

Ended run_steps(DeviceBackend& device, Course course) {
    set_seed(5);
    SmallJob job(course.job);
    TrainingStep step(job, course.step, device);
    Ended out;
    for (std::size_t i = 0; i < course.steps.size(); ++i) {
        std::vector<TensorBatch> batches;
        for (std::int64_t size : course.steps[i]) {
            torch::Tensor x =
                torch::sin(torch::arange(size * 4).view({size, 4}) * static_cast<double>(i + 1));
            batches.push_back({x, x.sum(1, true)});
        }
        step.run(batches, std::ldexp(1.0, -5 - static_cast<int>(i % 3)));  // another rate each time
        if (std::string note = step.take_note(); !note.empty()) out.notes.push_back(note);
        out.losses.push_back(step.loss().item<float>());
    }
    for (const torch::Tensor& weight : job.model().parameters())
        out.weights.push_back(weight.detach().clone());
    return out;
}

// The same operations in the same order, so the same numbers.
void expect_equal(const Ended& a, const Ended& b) {
    EXPECT_EQ(a.losses, b.losses);
    for (std::size_t i = 0; i < a.weights.size(); ++i)
        EXPECT_TRUE(torch::equal(a.weights[i], b.weights[i])) << i;
}

TEST(CapturedStepTest, EqualsTheStepItself) {
    auto cpu = make_cpu_backend({.threads = 1}, false);
    for (OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd}) {
        for (Precision precision : {Precision::fp32, Precision::fp16, Precision::bf16}) {
            for (double clip : {0.0, 0.5}) {
                Course course{.step = {.precision = precision, .capture = true, .grad_clip = clip}};
                course.step.optimizer.kind = kind;
                course.steps.assign(9, {6, 2});
                FakeDevice device;
                Ended captured = run_steps(device, course);
                expect_equal(captured, run_steps(*cpu, course));
                EXPECT_EQ(device.captures, 1);
                EXPECT_EQ(captured.notes, std::vector<std::string>{
                                              "the step is captured as one graph of 8 samples"});
            }
        }
    }
}

// Whichever comes first or fourth: the full step is captured, the short one never.
TEST(CapturedStepTest, IsOfTheFullShape) {
    auto cpu = make_cpu_backend({.threads = 1}, false);
    Course course{.step = {.capture = true, .full = 8}};
    course.steps = {{8}, {8}, {8}, {3}, {8}, {8}, {3}, {8}, {8}};
    FakeDevice device;
    Ended captured = run_steps(device, course);
    expect_equal(captured, run_steps(*cpu, course));
    EXPECT_EQ(device.captures, 1);
    EXPECT_EQ(captured.notes, (std::vector<std::string>{
                                  "steps of other than 8 samples run without the captured graph",
                                  "the step is captured as one graph of 8 samples"}));
}

TEST(CapturedStepTest, ThatCannotBeRunsAsItIs) {
    auto cpu = make_cpu_backend({.threads = 1}, false);
    Course course{.step = {.capture = true}};
    course.steps.assign(7, {8});
    Ended plain = run_steps(*cpu, course);
    int losses = 0;
    course.job.at_loss = [&](std::int64_t number) {
        losses = static_cast<int>(number) + 1;
        (void)torch::ones({}).item();  // reads a value back
    };
    FakeDevice device;
    Ended ended = run_steps(device, course);
    expect_equal(ended, plain);
    ASSERT_EQ(ended.notes.size(), 1u);
    EXPECT_THAT(ended.notes[0],
                HasSubstr("the step cannot be captured and runs as it is: operation "
                          "not permitted when stream is capturing"));
    EXPECT_EQ(device.captures, 1);
}

// The weights are as before: the step can be run again with half the micro-batch.
TEST(CapturedStepTest, SurvivesRunningOutOfMemory) {
    auto cpu = make_cpu_backend({.threads = 1}, false);
    for (std::int64_t at : {1, 3}) {  // in the warm-up, in the capture
        FakeDevice device;
        set_seed(5);
        SmallJob job({.at_loss = [&](std::int64_t number) {
            TORCH_CHECK_WITH(OutOfMemoryError, number != at, "no room");
        }});
        TrainingStep step(job, {.capture = true}, device);
        TensorBatch batch{torch::ones({8, 4}), torch::ones({8, 1})};
        for (std::int64_t i = 0; i < at; ++i) step.run({&batch, 1}, 0.01);
        torch::Tensor before = job.model().parameters()[0].detach().clone();
        EXPECT_THROW(step.run({&batch, 1}, 0.01), c10::OutOfMemoryError);
        EXPECT_TRUE(torch::equal(before, job.model().parameters()[0].detach()));
        step.set_split(2);
        step.run({&batch, 1}, 0.01);
        EXPECT_FALSE(torch::equal(before, job.model().parameters()[0].detach()));
        EXPECT_THAT(step.take_note(), HasSubstr("no longer captured"));
    }
}

TEST(CapturedStepTest, DropsOutOtherUnitsEachTime) {
    FakeDevice device;
    Course course{.step = {.capture = true}, .job = {.dropout = 0.5, .width = 64}};
    set_seed(5);
    SmallJob job(course.job);
    TrainingStep step(job, course.step, device);
    TensorBatch batch{torch::ones({8, 4}), torch::ones({8, 1})};
    std::set<float> losses;
    for (int i = 0; i < 8; ++i) {
        step.run({&batch, 1}, 0.0);  // the weights stay, so only the units differ
        losses.insert(step.loss().item<float>());
    }
    EXPECT_EQ(device.captures, 1);
    EXPECT_GT(losses.size(), 5u);
}

TEST(OpenDeviceTest, TheOnlyVisibleGpuIsThatOfEveryRank) {
    EXPECT_EQ(gpu_of_rank(3, 1), 0);
    EXPECT_EQ(gpu_of_rank(3, 8), 3);
    EXPECT_THROW((void)gpu_of_rank(3, 2), MachineError);
    EXPECT_THROW((void)gpu_of_rank(0, 0), MachineError);
}

TEST(OpenDeviceTest, AnAmdGpuIsCalledByItsName) {
    TemporaryFolder folder;
    std::string place = "bus/pci/devices/0000:03:00.0/";
    EXPECT_EQ(amd_gpu(folder.path()), "");
    folder.file(place + "vendor", "0x10de\n");
    folder.file(place + "class", "0x030000\n");
    EXPECT_EQ(amd_gpu(folder.path()), "");
    folder.file(place + "vendor", "0x1002\n");
    folder.file(place + "device", "0x744c\n");
    EXPECT_EQ(amd_gpu(folder.path()), "AMD GPU 0x744c");
    folder.file(place + "product_name", "Instinct MI300X\n");
    folder.file(place + "class", "0x120000\n");
    EXPECT_EQ(amd_gpu(folder.path()), "Instinct MI300X");
}

TEST(OpenDeviceTest, MemoryThatRanOutHasManyNames) {
    for (const char* text :
         {"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
          "cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "CUDA error: out of memory"}) {
        EXPECT_THROW(with_memory_errors([&] { TORCH_CHECK(false, text); }), c10::OutOfMemoryError)
            << text;
    }
    try {
        with_memory_errors([] { TORCH_CHECK(false, "shapes differ"); });
        FAIL();
    } catch (const c10::Error& error) {
        EXPECT_FALSE(is_out_of_memory(error));
    }
}

}  // namespace
}  // namespace saturate
