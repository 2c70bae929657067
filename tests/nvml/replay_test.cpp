// SPDX-License-Identifier: Apache-2.0
// The stand-in for libnvidia-ml.so.1 itself: that it plays a recording and refuses what the real
// one would refuse.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nvml.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>

#include "support/replayed.h"

namespace saturate {
namespace {

using testing::ElementsAre;

// One loading of the library with a recording; the recording's time moves by 0.1 s when a reading
// is asked again.
class Library {
  public:
    explicit Library(const std::string& scenario, const std::string& variant = "new")
        : Library(std::filesystem::path(SATURATE_NVML_REPLAY) / "scenarios" / (scenario + ".jsonl"),
                  Variant{variant}) {}

    struct Variant {
        std::string name;
    };
    Library(const std::filesystem::path& recording, const Variant& variant)
        : calls_(folder_.path() / "calls") {
        ::setenv("SATURATE_NVML_RECORDING", recording.c_str(), 1);
        ::setenv("SATURATE_NVML_CLOCK", "step:0.1", 1);
        ::setenv("SATURATE_NVML_CALLS", calls_.c_str(), 1);
        std::string path =
            std::string(SATURATE_NVML_REPLAY) + "/" + variant.name + "/libnvidia-ml.so.1";
        library_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        EXPECT_NE(library_, nullptr) << ::dlerror();
    }
    ~Library() { ::dlclose(library_); }

    template <typename Function>
    Function* get(const char* symbol) const {
        return reinterpret_cast<Function*>(::dlsym(library_, symbol));
    }
    [[nodiscard]] bool has(const char* symbol) const {
        return ::dlsym(library_, symbol) != nullptr;
    }

    nvmlDevice_t start() const {
        EXPECT_EQ(get<decltype(nvmlInitWithFlags)>("nvmlInitWithFlags")(1), NVML_SUCCESS);
        return device(0);
    }
    [[nodiscard]] nvmlDevice_t device(unsigned index) const {
        nvmlDevice_t device = nullptr;
        EXPECT_EQ(get<decltype(nvmlDeviceGetHandleByIndex_v2)>("nvmlDeviceGetHandleByIndex_v2")(
                      index, &device),
                  NVML_SUCCESS);
        return device;
    }
    [[nodiscard]] std::map<std::string, std::uint64_t> counts() const {
        return replay_calls(calls_);
    }

  private:
    TemporaryFolder folder_;
    std::filesystem::path calls_;
    void* library_ = nullptr;
};

// The name is used twice: once for the type, once to find it.
#define CALL(library, function) (library).get<decltype(function)>(#function)

TEST(NvmlReplayTest, EveryScenarioLoadsAndHasItsGpus) {
    int scenarios = 0;
    for (const auto& entry : std::filesystem::directory_iterator(
             std::filesystem::path(SATURATE_NVML_REPLAY) / "scenarios")) {
        if (entry.path().extension() != ".jsonl") continue;
        ++scenarios;
        Library library(entry.path().stem());
        nvmlDevice_t device = library.start();
        unsigned count = 0;
        EXPECT_EQ(CALL(library, nvmlDeviceGetCount_v2)(&count), NVML_SUCCESS);
        EXPECT_GE(count, 1u) << entry.path();
        char name[96];
        EXPECT_EQ(CALL(library, nvmlDeviceGetName)(device, name, sizeof name), NVML_SUCCESS);
        EXPECT_EQ(CALL(library, nvmlShutdown)(), NVML_SUCCESS);
    }
    EXPECT_EQ(scenarios, 18);
}

TEST(NvmlReplayTest, TimeStepsWhenAReadingIsAskedForAgain) {
    Library library("starved");
    nvmlDevice_t device = library.start();
    std::vector<unsigned> seen;
    for (int i = 0; i < 5; ++i) {
        nvmlUtilization_t rates;
        ASSERT_EQ(CALL(library, nvmlDeviceGetUtilizationRates)(device, &rates), NVML_SUCCESS);
        seen.push_back(rates.gpu);
        unsigned power = 0;  // another reading does not move it
        ASSERT_EQ(CALL(library, nvmlDeviceGetPowerUsage)(device, &power), NVML_SUCCESS);
        EXPECT_EQ(power, rates.gpu ? 480000u : 140000u);
    }
    EXPECT_THAT(seen, ElementsAre(100, 0, 0, 0, 100));
}

TEST(NvmlReplayTest, WrongVersionWordsAreRefusedAndCounted) {
    Library library("busy");
    nvmlDevice_t device = library.start();
    nvmlMemory_v2_t memory{};
    memory.version = 2;  // what the header's comment says; the driver wants the macro
    EXPECT_EQ(CALL(library, nvmlDeviceGetMemoryInfo_v2)(device, &memory),
              NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    memory.version = nvmlMemory_v2;
    EXPECT_EQ(CALL(library, nvmlDeviceGetMemoryInfo_v2)(device, &memory), NVML_SUCCESS);
    EXPECT_EQ(memory.used, 60ull << 30);
    nvmlTemperature_t temperature{};
    EXPECT_EQ(CALL(library, nvmlDeviceGetTemperatureV)(device, &temperature),
              NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    nvmlGpmSupport_t support{};
    EXPECT_EQ(CALL(library, nvmlGpmQueryDeviceSupport)(device, &support),
              NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    auto counts = library.counts();
    EXPECT_EQ(counts["nvmlDeviceGetMemoryInfo_v2"], 2u);
    EXPECT_EQ(counts["!nvmlDeviceGetMemoryInfo_v2"], 1u);
    EXPECT_EQ(counts["!nvmlDeviceGetTemperatureV"], 1u);
    EXPECT_EQ(counts["!nvmlGpmQueryDeviceSupport"], 1u);
}

TEST(NvmlReplayTest, ForeignHandlesAndAnEndedLibraryAreRefused) {
    Library library("busy");
    nvmlDevice_t device = library.start();
    unsigned power = 0;
    auto* foreign = reinterpret_cast<nvmlDevice_t>(&power);
    EXPECT_EQ(CALL(library, nvmlDeviceGetPowerUsage)(foreign, &power), NVML_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(CALL(library, nvmlDeviceGetPowerUsage)(device, nullptr), NVML_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(CALL(library, nvmlShutdown)(), NVML_SUCCESS);
    EXPECT_EQ(CALL(library, nvmlDeviceGetPowerUsage)(device, &power), NVML_ERROR_UNINITIALIZED);
    EXPECT_EQ(library.counts()["!nvmlDeviceGetPowerUsage"], 3u);
}

TEST(NvmlReplayTest, WhatACallDoesNotSetIsPoisoned) {
    Library library("busy");
    nvmlDevice_t device = library.start();
    char name[96] = {};
    ASSERT_EQ(CALL(library, nvmlDeviceGetName)(device, name, sizeof name), NVML_SUCCESS);
    EXPECT_STREQ(name, "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(static_cast<unsigned char>(name[95]), 0xA5);
    unsigned fan = 0;
    EXPECT_EQ(CALL(library, nvmlDeviceGetFanSpeed)(device, &fan), NVML_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(fan, 0xA5A5A5A5u);
    nvmlFieldValue_t fields[2] = {};
    fields[0].fieldId = 186;
    fields[1].fieldId = 138;  // no NVLink
    ASSERT_EQ(CALL(library, nvmlDeviceGetFieldValues)(device, 2, fields), NVML_SUCCESS);
    EXPECT_EQ(fields[0].nvmlReturn, NVML_SUCCESS);
    EXPECT_EQ(fields[0].valueType, NVML_VALUE_TYPE_UNSIGNED_INT);
    EXPECT_EQ(fields[0].value.uiVal, 610000u);
    EXPECT_EQ(fields[0].value.ullVal >> 32, 0xA5A5A5A5u) << "only 32 bits are the value";
    EXPECT_EQ(fields[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(fields[1].value.ullVal, 0xA5A5A5A5A5A5A5A5u);
}

TEST(NvmlReplayTest, ALostGpuAnswersNothingAndTheOtherGoesOn) {
    Library library("gpu_lost");
    library.start();
    nvmlReturn_t second = NVML_SUCCESS;
    int steps = 0;
    for (; second == NVML_SUCCESS && steps < 30; ++steps) {
        unsigned power = 0;
        EXPECT_EQ(CALL(library, nvmlDeviceGetPowerUsage)(library.device(0), &power), NVML_SUCCESS);
        second = CALL(library, nvmlDeviceGetPowerUsage)(library.device(1), &power);
    }
    EXPECT_EQ(second, NVML_ERROR_GPU_IS_LOST);
    EXPECT_GE(steps, 10);
    EXPECT_LE(steps, 12);
}

TEST(NvmlReplayTest, ProcessEntriesHaveTheRecordedStride) {
    for (std::size_t stride : {24u, 32u}) {
        Library library("stride_" + std::to_string(stride));
        nvmlDevice_t device = library.start();
        alignas(8) unsigned char raw[4 * 32];
        std::memset(raw, 0, sizeof raw);
        unsigned count = 4;
        ASSERT_EQ(CALL(library, nvmlDeviceGetComputeRunningProcesses_v3)(
                      device, &count, reinterpret_cast<nvmlProcessInfo_t*>(raw)),
                  NVML_SUCCESS);
        EXPECT_EQ(count, 3u);
        unsigned pids[3];
        for (std::size_t i = 0; i < 3; ++i) std::memcpy(&pids[i], raw + i * stride, 4);
        EXPECT_THAT(pids, ElementsAre(4242, 4343, 4444)) << stride;
    }
}

TEST(NvmlReplayTest, AProcessListCanGrowBetweenTwoCalls) {
    Library library("processes_grow");
    nvmlDevice_t device = library.start();
    auto* ask = CALL(library, nvmlDeviceGetComputeRunningProcesses_v3);
    unsigned count = 0;
    EXPECT_EQ(ask(device, &count, nullptr), NVML_ERROR_INSUFFICIENT_SIZE);
    EXPECT_EQ(count, 1u);
    std::vector<nvmlProcessInfo_t> entries(8);
    EXPECT_EQ(ask(device, &count, entries.data()), NVML_ERROR_INSUFFICIENT_SIZE);
    EXPECT_EQ(count, 3u);
    EXPECT_EQ(ask(device, &count, entries.data()), NVML_SUCCESS);
    EXPECT_EQ(entries[2].pid, 900001u);
}

TEST(NvmlReplayTest, TheRingGivesOnlyNewSamplesAndThenNotFound) {
    Library library("starved");
    nvmlDevice_t device = library.start();
    auto* ask = CALL(library, nvmlDeviceGetSamples);
    for (int i = 0; i < 4; ++i) {
        unsigned power = 0;
        CALL(library, nvmlDeviceGetPowerUsage)(device, &power);
    }
    nvmlValueType_t type;
    unsigned count = 0;
    ASSERT_EQ(ask(device, NVML_GPU_UTILIZATION_SAMPLES, 0, &type, &count, nullptr), NVML_SUCCESS);
    std::vector<nvmlSample_t> samples(count);
    ASSERT_EQ(ask(device, NVML_GPU_UTILIZATION_SAMPLES, 0, &type, &count, samples.data()),
              NVML_SUCCESS);
    EXPECT_EQ(count, 4u);
    EXPECT_EQ(type, NVML_VALUE_TYPE_UNSIGNED_INT);
    EXPECT_EQ(samples[0].sampleValue.uiVal, 100u);
    EXPECT_NEAR(static_cast<double>(samples[3].timeStamp - samples[0].timeStamp), 300000, 2);
    EXPECT_EQ(ask(device, NVML_GPU_UTILIZATION_SAMPLES, samples[3].timeStamp, &type, &count,
                  samples.data()),
              NVML_ERROR_NOT_FOUND);
}

TEST(NvmlReplayTest, GpmNeedsTwoSamplesOfOneGpuThatAreApart) {
    Library library("nccl_spin");
    nvmlDevice_t device = library.start();
    nvmlGpmMetricsGet_t get{};
    get.version = NVML_GPM_METRICS_GET_VERSION;
    get.numMetrics = 2;
    get.metrics[0].metricId = NVML_GPM_METRIC_SM_UTIL;
    get.metrics[1].metricId = NVML_GPM_METRIC_MAX - 1;
    ASSERT_EQ(CALL(library, nvmlGpmSampleAlloc)(&get.sample1), NVML_SUCCESS);
    ASSERT_EQ(CALL(library, nvmlGpmSampleAlloc)(&get.sample2), NVML_SUCCESS);
    ASSERT_EQ(CALL(library, nvmlGpmSampleGet)(device, get.sample1), NVML_SUCCESS);
    EXPECT_EQ(CALL(library, nvmlGpmMetricsGet)(&get), NVML_ERROR_INVALID_ARGUMENT)
        << "the second was never taken";
    ASSERT_EQ(CALL(library, nvmlGpmSampleGet)(device, get.sample2), NVML_SUCCESS);
    ASSERT_EQ(CALL(library, nvmlGpmMetricsGet)(&get), NVML_SUCCESS);
    EXPECT_TRUE(std::isnan(get.metrics[0].value)) << "no time has passed between them";
    unsigned power = 0;
    CALL(library, nvmlDeviceGetPowerUsage)(device, &power);
    CALL(library, nvmlDeviceGetPowerUsage)(device, &power);
    ASSERT_EQ(CALL(library, nvmlGpmSampleGet)(device, get.sample2), NVML_SUCCESS);
    ASSERT_EQ(CALL(library, nvmlGpmMetricsGet)(&get), NVML_SUCCESS);
    EXPECT_EQ(get.metrics[0].value, 5);
    EXPECT_EQ(get.metrics[1].nvmlReturn, NVML_ERROR_NOT_SUPPORTED);
}

TEST(NvmlReplayTest, TheOldVariantLacksTheNewerSymbols) {
    Library library("old_driver", "old");
    nvmlDevice_t device = library.start();
    for (const char* symbol : {"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetTemperatureV",
                               "nvmlDeviceGetCurrentClocksEventReasons",
                               "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlGpmMetricsGet"})
        EXPECT_FALSE(library.has(symbol)) << symbol;
    nvmlMemory_t memory;
    ASSERT_EQ(CALL(library, nvmlDeviceGetMemoryInfo)(device, &memory), NVML_SUCCESS);
    EXPECT_EQ(memory.used, (12ull << 30) + (300ull << 20))
        << "version 1 counts what is reserved as used";
}

TEST(NvmlReplayTest, ABrokenRecordingIsRefusedWithItsLine) {
    TemporaryFolder folder;
    auto backwards = folder.file("r.jsonl",
                                 "{\"schema\":1,\"kind\":\"nvml-recording\",\"gpus\":[{}]}\n"
                                 "{\"t\":2,\"gpu\":0,\"call\":\"PowerUsage\",\"value\":1}\n"
                                 "{\"t\":1,\"gpu\":0,\"call\":\"PowerUsage\",\"value\":1}\n");
    Library library(backwards, Library::Variant{"new"});
    testing::internal::CaptureStderr();
    EXPECT_EQ(CALL(library, nvmlInitWithFlags)(1), NVML_ERROR_UNKNOWN);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "nvml replay: error: " + backwards.string() +
                  ":3: t goes back to 1\n  expected: 2 or later\n");
}

}  // namespace
}  // namespace saturate
