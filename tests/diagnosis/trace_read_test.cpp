// SPDX-License-Identifier: Apache-2.0
// The reader: what good traces become, and that bad ones are repaired, dropped or named.
#include "diagnosis/trace_read.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/compress.h"
#include "base/error.h"
#include "diagnosis/trace_build.h"
#include "diagnosis/trace_repair.h"

namespace saturate {
namespace {

std::string kernel(std::string_view name, std::string_view time, std::string_view duration = "5") {
    return fmt::format(
        R"({{"ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 7, "ts": {}, "dur": {},
            "args": {{"device": 0, "stream": 7, "correlation": 12, "External id": 3,
                      "grid": [4,2,1], "block": [128,1,1]}}}})",
        name, time, duration);
}

std::string document(std::string_view events) {
    return fmt::format(R"({{"schemaVersion": 1, "traceEvents": [{}], "traceName": "x"}})", events);
}

std::string error_of(std::string_view bytes) {
    try {
        (void)parse_trace(bytes, "t.json");
    } catch (const UserError& error) {
        return error.what();
    }
    return "no error";
}

// ROCm's older profiler names neither device nor stream in the arguments.
TEST(TraceReadTest, WorkWithoutADeviceInItsArgumentsIsTheGpus) {
    Trace trace = parse_trace(
        R"({"traceEvents":[
            {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":900,"tid":900,"ts":0,"dur":20},
            {"ph":"X","cat":"kernel","name":"Cijk_Ailk","pid":2,"tid":0,"ts":20,"dur":100,
             "args":{"External id":25}},
            {"ph":"X","cat":"kernel","name":"Cijk_Ailk","pid":123456,"tid":0,"ts":120,"dur":100}]})",
        "made.json");
    std::vector<int> devices;
    for (const Event& event : trace.events) {
        if (is_gpu(event.category)) devices.push_back(trace.lane(event).device);
    }
    EXPECT_EQ(devices, (std::vector<int>{2, 0}));  // a process that can be no device: the first
}

TEST(TraceReadTest, ReadsAKernelWithItsArguments) {
    Trace trace = parse_trace(document(kernel("gemm", "1712195495505543.234", "1.5")), "t.json");
    ASSERT_EQ(trace.events.size(), 1u);
    const Event& event = trace.events[0];
    EXPECT_EQ(trace.name(event), "gemm");
    EXPECT_EQ(event.category, Category::kernel);
    EXPECT_EQ(event.start_ns, 0);
    EXPECT_EQ(trace.origin_ns, 1712195495505543234);  // exact: more digits than a double has
    EXPECT_EQ(event.duration_ns, 1500);
    EXPECT_EQ(event.correlation, 12u);
    EXPECT_EQ(event.external, 3u);
    ASSERT_NE(trace.gpu_detail(event), nullptr);
    EXPECT_EQ(trace.gpu_detail(event)->blocks, 8u);
    EXPECT_EQ(trace.lane(event).stream, 7);
    EXPECT_EQ(trace.losses.lost(), 0u);
}

TEST(TraceReadTest, ReadsABareArrayGzipAndStringTimes) {
    Trace trace = parse_trace(gzip("[" + kernel("a", "\"100.5\"") + "]"), "t.json.gz");
    ASSERT_EQ(trace.events.size(), 1u);
    EXPECT_EQ(trace.origin_ns, 100'500);
}

TEST(TraceReadTest, ReadsRankAndDevicesOnEitherSideOfTheEvents) {
    std::string text =
        R"({"deviceProperties": [{"id": 0, "name": "Tesla V100", "computeMajor": 7, "computeMinor": 0,
            "totalGlobalMem": 34084028416, "numSms": 80}], "traceEvents": [)" +
        kernel("a", "1") +
        R"(], "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8}})";
    Trace trace = parse_trace(text, "t.json");
    ASSERT_EQ(trace.devices.size(), 1u);
    EXPECT_EQ(trace.devices[0].sm_count, 80);
    EXPECT_EQ(trace.devices[0].capability, (Capability{7, 0}));
    EXPECT_EQ(trace.rank, 3);
    EXPECT_EQ(trace.world_size, 8);
    EXPECT_FALSE(trace.losses.truncated);
}

TEST(TraceReadTest, NormalisesTheCategoriesOfAllYears) {
    EXPECT_EQ(category_of("Kernel", "k"), Category::kernel);
    EXPECT_EQ(category_of("Operator", "aten::add"), Category::op);
    EXPECT_EQ(category_of("Operator", "ProfilerStep#5"), Category::annotation);
    EXPECT_EQ(category_of("cpu_op", "Optimizer.step#SGD.step"), Category::annotation);
    EXPECT_EQ(category_of("gpu_user_annotation", "ProfilerStep#5"), Category::gpu_annotation);
    EXPECT_EQ(category_of("hip_runtime", "hipFree"), Category::runtime);
    EXPECT_EQ(category_of("Memset", "m"), Category::memset);
}

TEST(TraceReadTest, RepairsControlCharactersAndUnescapedQuotes) {
    std::string events = kernel("a", "1") + "," + kernel("b\x01\nc", "2") + "," +
                         kernel("op<\"x\", \"y\">", "3") + "," + kernel("d\xff", "4") + "," +
                         kernel("e", "5");
    Trace trace = parse_trace(document(events), "t.json");
    ASSERT_EQ(trace.events.size(), 5u);
    EXPECT_EQ(trace.name(trace.events[1]), "b??c");
    EXPECT_EQ(trace.name(trace.events[2]), "op<\"x\", \"y\">");
    EXPECT_EQ(trace.name(trace.events[3]), "d?");
    EXPECT_EQ(trace.losses.repaired_events, 3u);
    EXPECT_EQ(trace.losses.lost(), 0u);
}

// A terminal would obey them: ESC ] 0 ; sets the window's title.
TEST(TraceReadTest, KeepsNoEscapeSequenceOfAName) {
    std::string events = kernel("\\u001b]0;owned\\u0007a", "1") + "," + kernel("b\\u009b31m", "2");
    Trace trace = parse_trace(document(events), "t.json");
    ASSERT_EQ(trace.events.size(), 2u);
    EXPECT_EQ(trace.name(trace.events[0]), "?]0;owned?a");
    EXPECT_EQ(trace.name(trace.events[1]), "b?31m");
}

TEST(TraceReadTest, ReadsAFileThatStartsWithAByteOrderMark) {
    Trace trace = parse_trace("\xef\xbb\xbf" + document(kernel("a", "1")), "t.json");
    EXPECT_EQ(trace.events.size(), 1u);
}

TEST(TraceReadTest, PairsBeginAndEndEventsOfEachThread) {
    auto edge = [](char phase, const char* name, int thread, int time) {
        return fmt::format(R"({{"ph":"{}","cat":"cpu_op","name":"{}","pid":1,"tid":{},"ts":{}}})",
                           phase, name, thread, time);
    };
    std::string events = edge('B', "outer", 1, 10) + "," + edge('B', "other", 2, 11) + "," +
                         edge('B', "inner", 1, 12) + "," + edge('E', "", 1, 15) + "," +
                         edge('E', "", 2, 18) + "," + edge('E', "outer", 1, 20) + "," +
                         edge('B', "open", 1, 30) + "," + edge('E', "", 3, 31);
    Trace trace = parse_trace(document(events), "t.json");
    ASSERT_EQ(trace.events.size(), 3u);
    EXPECT_EQ(trace.name(trace.events[0]), "outer");
    EXPECT_EQ(trace.events[0].duration_ns, 10'000);
    EXPECT_EQ(trace.events[1].duration_ns, 7'000);
    EXPECT_EQ(trace.events[2].duration_ns, 3'000);
    EXPECT_EQ(trace.losses.skipped_ranges, 2u);
}

TEST(TraceReadTest, CountsWhatItHasToDrop) {
    std::string events =
        kernel("a", "1") + R"(,{"ph": "X", "name": oops, "ts": 2},)" + kernel("b", "3");
    Trace trace = parse_trace(document(events), "t.json");
    EXPECT_EQ(trace.events.size(), 2u);
    EXPECT_EQ(trace.losses.dropped_events, 1u);
}

TEST(TraceReadTest, TakesNegativeDurationsAsZeroAndDropsImplausibleTimes) {
    std::string events = kernel("a", "1700000000000000") + "," +
                         kernel("b", "1700000000000001", "-4") + "," + kernel("zero", "0") + "," +
                         kernel("huge", "9223372036854775808") + "," +
                         kernel("c", "1700000000000009");
    Trace trace = parse_trace(document(events), "t.json");
    EXPECT_EQ(trace.events.size(), 3u);
    EXPECT_EQ(trace.losses.negative_durations, 1u);
    EXPECT_EQ(trace.losses.implausible_times, 2u);
}

TEST(TraceReadTest, TimesNearTheEndOfTheRangeDoNotWrapAround) {
    // 2^63 nanoseconds and a little less, as starts and as durations.
    std::string events = kernel("a", "9223372036854775.807") + "," +
                         kernel("b", "9223372036854774") + "," +
                         kernel("c", "100", "9223372036854775");
    EXPECT_THROW((void)parse_trace(document(events), "t.json"), UserError);
    Trace trace = parse_trace(
        document(events + "," + kernel("d", "100") + "," + kernel("e", "4611686018427387") + "," +
                 kernel("f", "101", "4611686018427386")),
        "t.json");
    ASSERT_EQ(trace.events.size(), 1u);
    EXPECT_EQ(trace.name(trace.events[0]), "d");
    EXPECT_EQ(trace.losses.lost(), 5u);
}

TEST(TraceReadTest, ReadsATraceCutAtAnyByte) {
    std::string whole = document(kernel("first", "1") + "," + kernel("second", "7"));
    std::size_t first_end = whole.find("}}") + 2;
    for (std::size_t size = 0; size < whole.size(); ++size) {
        std::string cut = whole.substr(0, size);
        if (size < first_end) {
            EXPECT_NE(error_of(cut), "no error") << size;
            continue;
        }
        Trace trace = parse_trace(cut, "t.json");
        EXPECT_GE(trace.events.size(), 1u) << size;
        EXPECT_TRUE(trace.losses.truncated) << size;
    }
}

TEST(TraceReadTest, ReadsMoreThanOneChunkInOrder) {
    std::string events;
    for (int i = 0; i < 20'000; ++i) {
        if (i) events += ",\n";
        events += kernel(fmt::format("k{}", i % 50), std::to_string(1000 + i));
    }
    Trace trace = parse_trace(document(events), "t.json");
    ASSERT_EQ(trace.events.size(), 20'000u);
    EXPECT_EQ(trace.names.size(), 51u);
    for (int i = 0; i < 20'000; ++i) EXPECT_EQ(trace.events[i].start_ns, i * 1000);
    EXPECT_EQ(trace.losses.lost(), 0u);
}

TEST(TraceReadTest, RepairsOneChunkOfManyOnly) {
    std::string events;
    for (int i = 0; i < 20'000; ++i) {
        if (i) events += ",\n";
        events += kernel(i == 9'000 ? "a\"b" : "k", std::to_string(1000 + i));
    }
    Trace trace = parse_trace(document(events), "t.json");
    EXPECT_EQ(trace.events.size(), 20'000u);
    EXPECT_EQ(trace.losses.repaired_events, 1u);
    EXPECT_EQ(trace.losses.lost(), 0u);
}

TEST(TraceReadTest, DropsAnEventLargerThanTheLimitAndReadsOn) {
    std::string events = kernel("a", "1") + "," + kernel(std::string(70 << 20, 'x'), "2") + "," +
                         kernel("b", "3") + "," + kernel("c", "4");
    Trace trace = parse_trace(document(events), "t.json");
    EXPECT_GE(trace.events.size(), 2u);
    EXPECT_GE(trace.losses.dropped_events, 1u);
}

TEST(TraceReadTest, NamesWhatIsNoTrace) {
    constexpr std::string_view kRest =
        "\n  expected: a trace of the PyTorch profiler\n"
        "  fix:      saturate diagnose --how prints how to record one";
    auto said = [&](std::string_view found) {
        return fmt::format("error: t.json: {}{}", found, kRest);
    };
    EXPECT_EQ(error_of(""), said("is empty"));
    EXPECT_EQ(error_of("  \n"), said("is empty"));
    EXPECT_EQ(error_of("hello"), said("is not JSON: it starts with \"hello\""));
    EXPECT_EQ(error_of(std::string("\x18\0\0\0\0\0\0\0\x11\x22\x33\x44 brain.Event:2", 26)),
              said("is a TensorBoard event file, not a profiler trace"));
    EXPECT_EQ(error_of("\x0a\x20\x12\x09/host:CPU"),
              said("is an XPlane file, not a profiler trace"));
    EXPECT_EQ(error_of(R"({"a": 1})"), said("is JSON, but has no \"traceEvents\""));
    EXPECT_EQ(error_of(R"({"schema": "1", "nodes": []})"),
              said("is a PyTorch execution trace (a graph without times)"));
    EXPECT_EQ(error_of(R"({"traceEvents": []})"), said("contains no events"));
    EXPECT_EQ(error_of(R"({"traceEvents": [{"ph": "X", "name": "f", "ts": 1, "dur": 2}]})"),
              said("contains no event of the PyTorch profiler (no known category)"));
}

TEST(TraceReadTest, NamesATraceOfTensorFlow) {
    EXPECT_TRUE(
        error_of(R"([{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}},
                             {"ph": "X", "name": "f", "pid": 1, "tid": 2, "ts": 1, "dur": 2}])")
            .starts_with("error: t.json: is an XPlane trace of TensorFlow or JAX"));
}

TEST(TraceReadTest, FindsTheUsersOwnFrame) {
    EXPECT_EQ(user_frame("/x/site-packages/torch/nn/module.py(3): f;train.py(54): <module>"),
              "train.py(54): <module>");
    EXPECT_EQ(user_frame("torch/a.py(1): g"), "");
}

}  // namespace
}  // namespace saturate
