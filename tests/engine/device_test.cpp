// SPDX-License-Identifier: Apache-2.0
// The seam to the device: what every device must keep to, on the CPU, the simulated one and a fake
// one that captures.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "engine/fake_device.h"
#include "engine/open_device.h"
#include "engine/selftest.h"
#include "engine/sim_backend.h"
#include "small_run.h"
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

SmallWish whole_run() {
    SmallWish wish;
    wish.job = {.size = 40};
    wish.train.workers = 2;
    wish.train.accumulation = 2;  // 5 batches, so 3 steps per epoch
    wish.train.ema = 0.9;
    wish.train.step.grad_clip = 1;
    wish.train.step.capture = true;
    wish.train.log_interval = 1;
    return wish;
}

// What of a path a device has not, so that the test there is of the rest. On the page too.
struct Lack {
    const char* test;
    const char* device;
    const char* runs;  // instead of the whole
};
constexpr Lack kLacks[] = {
    {"ACaptureRunsNothingAndMayFail", "cpu", "refuses, runs nothing"},
    {"ACaptureRunsNothingAndMayFail", "sim", "refuses, runs nothing"},
    {"CapturesExactlyWhenItSaysSo", "cpu", "refuses"},
    {"CapturesExactlyWhenItSaysSo", "sim", "refuses"},
    {"ItsRandomNumbersAreItsOwnOrTheHosts", "cpu", "the host's"},
    {"ItsRandomNumbersAreItsOwnOrTheHosts", "sim", "the host's"},
    {"ARunIsAsOnTheCpu", "sim", "its steps and events, no numbers"},
    {"AResumedRunGoesOnWhereItStopped", "sim", "its steps, no numbers"},
};

const Lack* find_lack(std::string_view test, std::string_view device) {
    auto at = std::ranges::find_if(
        kLacks, [&](const Lack& lack) { return lack.test == test && lack.device == device; });
    return at == std::end(kLacks) ? nullptr : at;
}

class DeviceTest : public testing::TestWithParam<const char*> {
  protected:
    std::unique_ptr<DeviceBackend> device_ = open_for_test(GetParam());

    static bool lacks() {
        std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
        return find_lack(test.substr(0, test.find('/')), GetParam()) != nullptr;
    }

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

// The second is asked for first.
TEST_P(DeviceTest, TwoBatchesAreOnTheirWayAtOnce) {
    static const FieldSpec kSpec{.name = "x", .element = Element::float32, .shape = {1}};
    float numbers[2] = {3, 4};
    FieldView fields[2];
    std::vector<Upload> uploads;
    for (std::size_t i : {0, 1}) {
        fields[i] = {&kSpec, reinterpret_cast<std::byte*>(&numbers[i])};
        std::shared_ptr<void> slab(&numbers[i], [](void*) {});
        uploads.push_back(
            device_->start_upload({.size = 1, .fields = {&fields[i], 1}, .slab = slab}));
    }
    for (std::size_t i : {1, 0}) {
        device_->await_upload(uploads[i]);
        device_->synchronise();
        EXPECT_EQ(uploads[i].tensors.at(0).item<float>(), numbers[i]);
    }
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
    EXPECT_EQ(device_->proves().capture, !lacks());
    if (lacks()) {
        EXPECT_THROW((void)device_->capture(work), Bug);
        EXPECT_FALSE(y.defined());
        return;
    }
    auto captured = device_->capture(work);
    torch::Tensor out = y;
    x.fill_(5);
    captured->replay();
    EXPECT_TRUE(torch::equal(out, torch::full({3}, 11.0F)));
}

TEST_P(DeviceTest, ACaptureRunsNothingAndMayFail) {
    torch::Tensor x = torch::ones({3});
    EXPECT_ANY_THROW((void)device_->capture([&] {
        x.add_(1);
        (void)x.sum().item();
    }));
    EXPECT_TRUE(torch::equal(x, torch::ones({3})));
    if (lacks()) return;
    auto captured = device_->capture([&] { x.add_(1); });
    EXPECT_TRUE(torch::equal(x, torch::ones({3})));
    captured->replay();
    captured->replay();
    EXPECT_TRUE(torch::equal(x, torch::full({3}, 3.0F)));
}

TEST_P(DeviceTest, ItsRandomNumbersAreItsOwnOrTheHosts) {
    if (std::string(GetParam()) == "fake")
        static_cast<FakeDevice&>(*device_).random = torch::full({16}, 3, torch::kByte);
    auto state = device_->random_state();
    EXPECT_EQ(state.has_value(), !lacks());
    if (!state) {
        EXPECT_THROW(device_->set_random_state(torch::zeros({16}, torch::kByte)), Bug);
        return;
    }
    device_->set_random_state(torch::zeros({16}, torch::kByte));
    device_->set_random_state(*state);
    EXPECT_TRUE(torch::equal(*device_->random_state(), *state));
}

// Steps, evaluations, a moving mean, accumulation, checkpoints: what is computed is the same.
TEST_P(DeviceTest, ARunIsAsOnTheCpu) {
    SmallWish wish = whole_run();
    auto here = train(wish, *device_), there = train(wish);
    ASSERT_EQ(here->result.ended, "done") << here->result.problem->text();
    EXPECT_EQ(here->recorder.steps.size(), there->recorder.steps.size());
    EXPECT_EQ(here->result.summary.samples, there->result.summary.samples);
    EXPECT_EQ(here->count(EventKind::epoch), there->count(EventKind::epoch));
    EXPECT_EQ(here->count(EventKind::evaluation), there->count(EventKind::evaluation));
    if (lacks()) {
        EXPECT_FALSE(here->result.summary.loss_last);  // learns nothing, and says no loss
    } else {
        EXPECT_EQ(here->losses(), there->losses());
        EXPECT_EQ(*here->result.metric_best, *there->result.metric_best);
    }
}

TEST_P(DeviceTest, AResumedRunGoesOnWhereItStopped) {
    TemporaryFolder folder;
    SmallWish wish = whole_run();
    auto whole = train(wish, *device_);
    wish.places.checkpoints = folder.path() / "c";
    wish.stop_after = 5;
    auto begun = train(wish, *open_for_test(GetParam()));
    EXPECT_EQ(begun->result.ended, "interrupted");
    wish.stop_after = -1;
    wish.resume = true;
    auto rest = train(wish, *open_for_test(GetParam()));
    ASSERT_EQ(rest->result.ended, "done") << rest->result.problem->text();
    EXPECT_EQ(rest->recorder.steps.front().step, begun->recorder.steps.back().step + 1);
    EXPECT_EQ(rest->recorder.steps.back().step, whole->recorder.steps.back().step);
    if (lacks()) return;
    EXPECT_EQ(*rest->result.metric, *whole->result.metric);
    EXPECT_EQ(*rest->result.summary.loss_last, *whole->result.summary.loss_last);
}

// A simulated device has the memory of its card, and a step of 8,192 samples needs more.
TEST_P(DeviceTest, OutOfMemoryHalvesTheMicroBatch) {
    SmallWish wish;
    wish.train.epochs = 1;
    wish.train.eval_epochs = 0;
    std::int64_t failures = 0;
    if (device_->simulated()) {
        wish.job.heavy = 1 << 20;
        wish.job.size = wish.train.batch_size = 8192;
    } else {
        wish.job.at_loss = [&](std::int64_t) {
            TORCH_CHECK_WITH(OutOfMemoryError, failures++ > 0, "no room");
        };
    }
    auto ran = train(wish, *device_);
    EXPECT_EQ(ran->result.ended, "done");
    std::int64_t size = wish.train.batch_size;
    EXPECT_EQ(ran->event_text(EventKind::out_of_memory),
              fmt::format("out of memory in step 0: micro-batch {} instead of {}, 2 times the "
                          "accumulation",
                          size / 2, size));
}

TEST_P(DeviceTest, WhatAJobThrowsEndsTheRunWithItsCause) {
    SmallWish wish;
    wish.job.at_loss = [](std::int64_t) { throw std::runtime_error("boom"); };
    auto ran = train(wish, *device_);
    EXPECT_EQ(ran->result.ended, "failed");
    EXPECT_EQ(ran->result.problem->found, "the job failed in step 0: boom");
}

// What the device tells by itself goes into the record, and nothing else does.
TEST_P(DeviceTest, TheRecordHoldsTheBusyTimeOfADeviceThatTellsIt) {
    auto ran = train({}, *device_);
    std::int64_t busy = std::ranges::count_if(
        ran->recorder.steps, [](const StepRecord& step) { return !!step.device_busy_ns; });
    EXPECT_EQ(busy > 0, device_->proves().exact_busy);
    EXPECT_EQ(ran->result.device_span_percent.has_value(), !device_->proves().exact_busy);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceTest, testing::Values("cpu", "sim", "fake"),
                         [](const auto& info) { return std::string(info.param); });

// `saturate selftest --device cuda` runs this list on a GPU.
TEST(SelftestTest, TheListPassesOnTheFakeDevice) {
    at::set_num_threads(1);  // on a busy machine threads that wait for each other take minutes
    FakeDevice device;
    device.times_late = 0;
    std::vector<SelftestItem> items = selftest_items(device);
    items.push_back(
        selftest_ranks_item(2, [](ProcessGroup&) { return std::make_unique<FakeDevice>(); }));
    items.push_back(selftest_device_item("eight steps on a second one",
                                         [] { return std::make_unique<FakeDevice>(); }));
    for (const SelftestItem& item : items) {
        SelftestCheck check = run_check(item);
        EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
    }
    EXPECT_EQ(items.size(), 32u);
    EXPECT_EQ(device.captures, 11);  // of 12 captured steps one never gets so far
}

TEST(SelftestTest, TheListPassesOnTheCpu) {
    SelftestList list = selftest_cpu();
    EXPECT_EQ(list.items.size(), 34u);
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

TEST(OpenDeviceTest, TheOnlyVisibleGpuIsThatOfEveryRank) {
    EXPECT_EQ(gpu_of_rank(3, 1), 0);
    EXPECT_EQ(gpu_of_rank(3, 8), 3);
    EXPECT_THROW((void)gpu_of_rank(3, 2), MachineError);
    EXPECT_THROW((void)gpu_of_rank(0, 0), MachineError);
}

TEST(OpenDeviceTest, AContainerWithoutTheDriversLibrarySaysSo) {
    TemporaryFolder proc;
    EXPECT_EQ(why_no_cuda_driver(proc.path()), "no NVIDIA driver on this machine");
    proc.file("driver/nvidia/version",
              "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06\n");
    EXPECT_EQ(why_no_cuda_driver(proc.path()),
              "libcuda.so.1 was not found, but the kernel has the NVIDIA driver");
}

TEST(OpenDeviceTest, WithoutADriverThatIsTheReason) {
    std::string why;
    if (load_cuda_plugin(why) || !why.starts_with("no NVIDIA driver"))
        GTEST_SKIP() << "this machine has a driver";
    try {
        (void)open_device("cuda", {}, false);
        FAIL();
    } catch (const MachineError& error) {
        EXPECT_THAT(error.what(),
                    testing::AnyOf(HasSubstr("no NVIDIA driver on this machine\n"
                                             "  expected: an NVIDIA driver and a GPU that this "
                                             "process can use\n"),
                                   HasSubstr("training on AMD GPUs (ROCm) is not supported yet")));
    }
    EXPECT_EQ(open_device("auto", {}, false).backend->name(), "cpu");
}

// Taken by another process: the machine's fault, told in one line, not a bug of ours.
TEST(OpenDeviceTest, AGpuThatCannotBeOpenedSaysWhy) {
    CudaPlugin busy{.device_count = [] { return 2; },
                    .open = [](int, const DeviceOptions&) -> std::unique_ptr<DeviceBackend> {
                        TORCH_CHECK(false,
                                    "CUDA error: all CUDA-capable devices are busy or "
                                    "unavailable\nSearch for `cudaErrorDevicesUnavailable'");
                        return nullptr;
                    }};
    try {
        (void)open_gpu(busy, {}, 1, {});
        FAIL();
    } catch (const MachineError& error) {
        EXPECT_EQ(error.problems().at(0).found,
                  "cuda:1 cannot be used: CUDA error: all CUDA-capable devices are busy or "
                  "unavailable");
    }
    EXPECT_THROW((void)open_gpu(busy, 2, 0, {}), MachineError);
}

// LibTorch computes only while its old and its new switches agree.
TEST(OpenDeviceTest, BothSwitchesOfTf32Agree) {
    at::Context& context = at::globalContext();
    for (bool on : {true, false}) {
        use_tf32(on);
        EXPECT_EQ(context.allowTF32CuBLAS(), on);
        EXPECT_EQ(context.allowTF32CuDNN(), on);
        for (at::Float32Op op : {at::Float32Op::CONV, at::Float32Op::RNN})
            EXPECT_EQ(context.allowTF32CuDNN(op), on);
        EXPECT_EQ(context.float32Precision(at::Float32Backend::CUDA, at::Float32Op::MATMUL) ==
                      at::Float32Precision::TF32,
                  on);
    }
}

// A model that the device has no room for: not a bug of ours either.
TEST(OpenDeviceTest, WhatPreparesARunFailsAsTheMachine) {
    auto found = [](const char* text) {
        try {
            with_machine_errors("the model", [&] { TORCH_CHECK(false, text); });
        } catch (const MachineError& error) {
            return error.problems().at(0).found;
        }
        return std::string();
    };
    EXPECT_EQ(found("CUDA error: out of memory\nSearch for `cudaErrorMemoryAllocation'"),
              "out of memory for the model: CUDA error: out of memory");
    EXPECT_EQ(found("CUDA error: no kernel image is available for execution on the device\nSearch"),
              "the model cannot be set up on this device: CUDA error: no kernel image is available "
              "for execution on the device");
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
          "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
          "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
          "FIND was unable to find an engine to execute this computation",
          "NCCL Error 1: unhandled cuda error. Last error: Cuda failure 2 'out of memory'",
          "CUDA error: out of memory"}) {
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

// One row for each path of every device, made from the tests themselves.
std::string devices_page() {
    std::string paths, others, streams;
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
        const testing::TestSuite& suite = *all.GetTestSuite(i);
        std::string_view name = suite.name();
        std::map<std::string, std::set<std::string>> ran;
        for (int k = 0; k < suite.total_test_count(); ++k) {
            std::string test = suite.GetTestInfo(k)->name();
            std::size_t slash = test.find('/');
            if (name == "All/DeviceTest")
                ran[test.substr(0, slash)].insert(test.substr(slash + 1));
            else if (name == "StreamBackendTest")
                streams += fmt::format("| {} |\n", test);
            else if (name == "FakeDeviceTest" || name == "CapturedStepTest")
                others += fmt::format("| {}.{} |\n", name, test);
        }
        for (const auto& [test, devices] : ran) {
            paths += fmt::format("| {} |", test);
            for (const char* device : {"cpu", "sim", "fake"}) {
                const Lack* lack = find_lack(test, device);
                paths += fmt::format(" {} |", !devices.count(device) ? "-"
                                              : lack                 ? lack->runs
                                                                     : "runs");
            }
            paths += "\n";
        }
    }
    return fmt::format(
        "# Devices in the tests\n\n"
        "No GPU was at hand when this was written. What the engine asks of a device "
        "(`src/engine/device_backend.h`) is tested on three:\nthe CPU, the simulated GPU "
        "(`--device sim:GPU`), and a fake one (`tests/engine/fake_device.h`) that copies late, "
        "captures steps, loses\nranks and fails on demand. A simulated GPU computes nothing and a "
        "CPU captures nothing: their columns say what is tested\ninstead. Made from the tests by "
        "`tools/golden-accept`.\n\n"
        "| every device (`DeviceTest`) | cpu | sim | fake |\n|---|---|---|---|\n{}\n"
        "| what only a GPU does, on the fake one |\n|---|\n{}\n"
        "The order of streams, events and page-locked memory is not in `cuda/` but in "
        "`src/engine/stream_backend.h`, for all kinds of device that LibTorch knows,\nand is "
        "tested on a kind that has nothing else (`tests/engine/fake_streams.h`).\n\n"
        "| streams and events (`StreamBackendTest`) |\n|---|\n{}",
        paths, others, streams);
}

TEST(DevicesPageTest, TheDocumentedPathsAreThoseOfTheTests) {
    const std::string file = SATURATE_SOURCE_DIR "/docs/devices.md";
    if (std::getenv("SATURATE_GOLDEN_ACCEPT")) write_file_whole(file, devices_page());
    EXPECT_EQ(read_file(file, 1 << 20, "the page"), devices_page())
        << "tools/golden-accept writes it anew";
}

}  // namespace
}  // namespace saturate
