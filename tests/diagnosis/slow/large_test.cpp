// SPDX-License-Identifier: Apache-2.0
// Traces as large as they come: ten million events, one name of a gigabyte, a gzip bomb. The files
// are made here, packed; the program reads them under a limit of its address space.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "support/run.h"

namespace saturate {
namespace {

// What a shell command writes, packed, as a file of the folder.
std::string packed(const TemporaryFolder& folder, const std::string& command) {
    std::string file = (folder.path() / "trace.json.gz").string();
    Ran made = run({"sh", "-c", fmt::format("({}) | gzip -1 > {}", command, file)});
    EXPECT_EQ(made.status, 0) << made.err;
    return file;
}

Ran diagnose(const std::string& file, int gigabytes, const std::string& options = "") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    gigabytes = 0;  // their shadow needs terabytes of address space
#endif
    std::string limit =
        gigabytes > 0 ? fmt::format("ulimit -v {}; ", gigabytes * 1'000'000) : std::string();
    return run(
        {"sh", "-c",
         fmt::format("{}exec {} diagnose --json {} {}", limit, SATURATE_BINARY, options, file)});
}

TEST(LargeTraceTest, TenMillionEventsFitInThreeGigabytes) {
    TemporaryFolder folder;
    std::string file = packed(folder, R"(awk 'BEGIN {
        print "{\"traceEvents\":["
        for (i = 0; i < 5000000; ++i) {
            printf "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":2,\"args\":{\"correlation\":%d}},\n", i * 10, i + 1
            printf "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k%d\",\"pid\":0,\"tid\":7,\"ts\":%d,\"dur\":5,\"args\":{\"device\":0,\"stream\":7,\"correlation\":%d}}%s\n", i % 100, i * 10 + 4, i + 1, i < 4999999 ? "," : "]}"
        }
    }')");
    Ran ran = diagnose(file, 3);
    ASSERT_EQ(ran.status, 0) << ran.err;
    Json answer = Json::parse(ran.out, "answer");
    EXPECT_NEAR(answer["busy_percent"].number().value_or(0), 50, 0.1);
    EXPECT_EQ(answer["dropped_events"].integer(), 0);
    EXPECT_NEAR(answer["window_ms"].number().value_or(0), 50'000, 1);
}

TEST(LargeTraceTest, ANameOfAGigabyteIsDroppedAndTheRestRead) {
    TemporaryFolder folder;
    constexpr std::string_view kEvent =
        R"({\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,\"tid\":7,\"ts\":%d,\"dur\":5})";
    std::string file = packed(folder, fmt::format(R"(printf "{{\"traceEvents\":[{0}," k 1
            printf '{{"ph":"X","cat":"kernel","pid":0,"tid":7,"ts":2,"dur":5,"name":"'
            head -c 1000000000 /dev/zero | tr '\0' x
            printf '"}},\n'; printf "{0},\n{0}]}}" k 20 k 30)",
                                                  kEvent));
    Ran ran = diagnose(file, 1);
    ASSERT_EQ(ran.status, 0) << ran.err;
    Json answer = Json::parse(ran.out, "answer");
    EXPECT_EQ(answer["dropped_events"].integer(), 1);
    EXPECT_THAT(ran.out, testing::HasSubstr("could not be read and were left out: 1"));
    EXPECT_NEAR(answer["window_ms"].number().value_or(0), 0.034, 0.0001);
}

TEST(LargeTraceTest, AGzipBombIsRefusedAtTheLimit) {
    TemporaryFolder folder;
    std::string file =
        packed(folder, R"(printf '{"traceEvents":['; head -c 3000000000 /dev/zero | tr '\0' ' ')");
    Ran ran = diagnose(file, 1, "--limit 2");
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(ran.err, fmt::format("error: {}: unpacks to more than 1.9 GiB\n"
                                   "  expected: a file that fits the limit\n"
                                   "  fix:      --limit GB raises the limit\n",
                                   file));
}

}  // namespace
}  // namespace saturate
