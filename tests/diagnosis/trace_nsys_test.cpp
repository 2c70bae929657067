// SPDX-License-Identifier: Apache-2.0
// Exports of Nsight Systems: what good ones become, and that bad ones are named. The files are made
// here with the tables and columns that the exporter writes.
#include "diagnosis/trace_nsys.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>

#include "base/compress.h"
#include "base/error.h"
#include "base/file.h"
#include "diagnosis/nsys_names.h"
#include "support/run.h"

namespace saturate {
namespace {

constexpr std::string_view kTables = R"(
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER,
  shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER,
  blockZ INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER,
  srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, text TEXT, textId INTEGER);
CREATE TABLE ThreadNames (nameId INTEGER, globalTid INTEGER);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER,
  computeMajor INTEGER, computeMinor INTEGER);
INSERT INTO StringIds VALUES (1, 'void gemm<float>(int)'), (2, 'cudaLaunchKernel_v7000'),
  (3, 'cudaMemcpyAsync_v3020'), (4, 'pt_autograd_0'), (5, 'iteration 8');
)";

constexpr std::int64_t kA = (std::int64_t{7} << 48) | (std::int64_t{100} << 24);
constexpr std::int64_t kB = (std::int64_t{7} << 48) | (std::int64_t{200} << 24);

std::string kernel(std::int64_t start, std::int64_t end, int device, int correlation,
                   std::int64_t process) {
    return fmt::format(
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, {}, 7, {}, {}, 1, 1, 4, 2, 1, 128, "
        "1, 1);",
        start, end, device, correlation, process);
}
std::string call(std::int64_t start, std::int64_t end, int correlation, std::int64_t process,
                 int name = 2) {
    return fmt::format("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, {}, {}, {});",
                       start, end, process + 11, correlation, name);
}
std::string range(std::int64_t start, std::int64_t end, std::int64_t process,
                  std::string_view text) {
    return fmt::format("INSERT INTO NVTX_EVENTS VALUES ({}, {}, {}, '{}', NULL);", start, end,
                       process + 11, text);
}

void write_database(const std::filesystem::path& path, const std::string& statements) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
    char* why = nullptr;
    EXPECT_EQ(sqlite3_exec(db, ("BEGIN;" + statements + "COMMIT;").c_str(), nullptr, nullptr, &why),
              SQLITE_OK)
        << why;
    sqlite3_close(db);
}

class TraceNsysTest : public testing::Test {
  protected:
    std::filesystem::path write(const std::string& statements) {
        std::filesystem::path path = folder_.path() / fmt::format("{}.sqlite", ++count_);
        write_database(path, statements);
        return path;
    }
    std::filesystem::path write_rows(const std::string& rows) {
        return write(std::string(kTables) + rows);
    }
    std::string error_of(const std::filesystem::path& path) {
        try {
            (void)read_nsys(path);
        } catch (const UserError& error) {
            std::string text = error.what();
            std::size_t at = text.find(path.string());
            if (at != std::string::npos) text.replace(at, path.string().size(), "FILE");
            return text;
        }
        return "no error";
    }
    std::string whole_error(std::string_view found, bool is_record = false) {
        return fmt::format(
            "error: FILE: {}\n  expected: an export of Nsight Systems with CUDA traced\n"
            "  fix:      {}",
            found,
            is_record
                ? "nsys profile --trace=cuda,nvtx python train.py, then nsys export --type sqlite"
                : "nsys export --type sqlite report.nsys-rep");
    }
    const Event& event(const Trace& trace, std::string_view name) {
        auto found = std::ranges::find_if(
            trace.events, [&](const Event& each) { return trace.name(each) == name; });
        EXPECT_NE(found, trace.events.end()) << name;
        return found == trace.events.end() ? trace.events.front() : *found;
    }

    TemporaryFolder folder_;
    int count_ = 0;
};

TEST_F(TraceNsysTest, ReadsKernelsCallsRangesThreadsAndDevices) {
    std::string rows =
        kernel(2000, 2500, 1, 9, kA) + call(1000, 1100, 9, kA) +
        range(900, 1200, kA, "aten::mm, seq = 4, op_id = 9, sizes = [[2, 3], [3, 4]]") +
        fmt::format("INSERT INTO ThreadNames VALUES (4, {});", kA + 11) +
        "INSERT INTO TARGET_INFO_GPU VALUES (0, 'A', 1, 1, 1, 0), (1, 'NVIDIA A100', 42949672960, "
        "108, 8, 0);";
    std::vector<Trace> traces = read_nsys(write_rows(rows));
    ASSERT_EQ(traces.size(), 1u);
    const Trace& trace = traces[0];
    EXPECT_EQ(trace.kind, TraceKind::nsys);
    EXPECT_FALSE(trace.rank);
    ASSERT_EQ(trace.events.size(), 3u);
    const Event& gemm = event(trace, "void gemm<float>(int)");
    EXPECT_EQ(gemm.category, Category::kernel);
    EXPECT_EQ(gemm.start_ns, 1100);  // from the first event
    EXPECT_EQ(gemm.duration_ns, 500);
    EXPECT_EQ(trace.lane(gemm).device, 1);
    EXPECT_EQ(trace.lane(gemm).stream, 7);
    EXPECT_EQ(trace.gpu_detail(gemm)->blocks, 8u);
    EXPECT_EQ(trace.gpu_detail(gemm)->threads, 128u);
    const Event& launch = event(trace, "cudaLaunchKernel");
    EXPECT_EQ(launch.category, Category::runtime);
    EXPECT_EQ(launch.correlation, gemm.correlation);
    EXPECT_EQ(trace.lane(launch).process, "100");
    EXPECT_EQ(trace.lane(launch).name, "thread 11 (pt_autograd_0)");
    const Event& op = event(trace, "aten::mm");
    EXPECT_EQ(op.category, Category::op);
    EXPECT_EQ(trace.names.text(trace.op_detail(op)->dims), "[[2, 3], [3, 4]]");
    ASSERT_NE(trace.device(1), nullptr);
    EXPECT_EQ(trace.device(1)->name, "NVIDIA A100");
    EXPECT_EQ(trace.device(1)->capability, (Capability{8, 0}));
}

TEST_F(TraceNsysTest, GivesEachProcessItsOwnRankWhenCorrelationsRepeat) {
    std::string rows = kernel(2000, 2500, 1, 9, kA) + call(1000, 1100, 9, kA) +
                       kernel(5000, 5500, 0, 9, kB) + call(4000, 4100, 9, kB) +
                       range(0, 10, kA + (std::int64_t{50} << 24), "of a process without a GPU");
    std::vector<Trace> traces = read_nsys(write_rows(rows));
    ASSERT_EQ(traces.size(), 2u);
    EXPECT_EQ(traces[0].rank, 0);
    EXPECT_EQ(traces[0].lane(event(traces[0], "void gemm<float>(int)")).device, 0);
    EXPECT_EQ(traces[0].lane(event(traces[0], "cudaLaunchKernel")).process, "200");
    EXPECT_EQ(traces[1].rank, 1);
    EXPECT_EQ(traces[1].world_size, 2);
    EXPECT_EQ(traces[1].events.size(), 2u);
}

TEST_F(TraceNsysTest, StandsAmongOtherTracesByItsFirstBytes) {
    std::string rows = kernel(2000, 2500, 1, 9, kA) + kernel(5000, 5500, 0, 9, kB);
    std::string content = read_file(write_rows(rows), 1 << 20, "a trace");
    std::filesystem::path packed = folder_.file("export", gzip(content));
    std::filesystem::path json = folder_.file(
        "t.json",
        R"([{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 5,
                       "args": {"device": 0, "stream": 7}}])");
    std::vector<Trace> traces = read_traces({json, packed});
    ASSERT_EQ(traces.size(), 3u);
    EXPECT_EQ(traces[0].kind, TraceKind::nsys);
    EXPECT_EQ(traces[1].kind, TraceKind::nsys);
    EXPECT_EQ(traces[2].kind, TraceKind::pytorch);  // without a rank: behind those that have one
}

TEST_F(TraceNsysTest, NamesCopiesAsTheRulesExpectThem) {
    std::string rows = fmt::format(
        "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (1, 5, 0, 7, 1, {0}, 4096, 1, 0, "
        "2), (6, 9, 0, 7, 2, {0}, 64, 2, 2, 1);",
        kA);
    std::vector<Trace> traces = read_nsys(write_rows(rows));
    const Trace& trace = traces.at(0);
    const Event& in = event(trace, "Memcpy HtoD (Pageable -> Device)");
    EXPECT_EQ(in.category, Category::memcpy);
    EXPECT_EQ(trace.gpu_detail(in)->bytes, 4096u);
    EXPECT_EQ(event(trace, "Memcpy DtoH (Device -> Pinned)").duration_ns, 3);
    EXPECT_EQ(copy_name(8, 2, 2), "Memcpy DtoD (Device -> Device)");
    EXPECT_EQ(copy_name(99, -1, 7), "Memcpy Unknown (Unknown -> Unknown)");
}

TEST_F(TraceNsysTest, TakesNumberedRangesAsSteps) {
    std::string rows =
        kernel(2000, 2500, 0, 9, kA) + range(1000, 3000, kA, "iteration 7") +
        range(1100, 1200, kA, "step 1") +
        fmt::format("INSERT INTO NVTX_EVENTS VALUES (3000, 4000, {}, NULL, 5);", kA + 11);
    const Trace trace = std::move(read_nsys(write_rows(rows)).at(0));
    EXPECT_EQ(event(trace, "ProfilerStep#7").category, Category::annotation);
    EXPECT_EQ(event(trace, "ProfilerStep#8").start_ns, 2000);
    EXPECT_EQ(event(trace, "step 1").duration_ns, 100);  // inside one
}

TEST_F(TraceNsysTest, SplitsTheTextsOfEmitNvtx) {
    EXPECT_EQ(split_nvtx("aten::mm, seq = 4, op_id = 9").name, "aten::mm");
    EXPECT_TRUE(split_nvtx("MyOp, op_id = 3").is_op);
    EXPECT_FALSE(split_nvtx("forward").is_op);
    EXPECT_EQ(split_nvtx("f, sizes = [[").dims, "");
    EXPECT_EQ(step_number("Train_Step_12"), 12);
    EXPECT_EQ(step_number("iteration: 3"), 3);
    EXPECT_EQ(step_number("12"), std::nullopt);
    EXPECT_EQ(step_number("conv2"), std::nullopt);
    EXPECT_EQ(step_number("step"), std::nullopt);
    EXPECT_EQ(without_version("cudaStreamGetCaptureInfo_v2_v11030"), "cudaStreamGetCaptureInfo_v2");
    EXPECT_EQ(without_version("cuLaunchKernelEx"), "cuLaunchKernelEx");
    EXPECT_EQ(without_version("a_v"), "a_v");
}

TEST_F(TraceNsysTest, CountsWhatItCannotUse) {
    std::string rows = kernel(100, 50, 0, 1, kA) + kernel(100, 200, 0, 1, kA) +
                       "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL(start, end, globalPid) VALUES "
                       "('x', 5, " +
                       std::to_string(kA) + "), (1, NULL, " + std::to_string(kA) +
                       "), (9223372036854775807, 1, " + std::to_string(kA) + ");";
    const Trace trace = std::move(read_nsys(write_rows(rows)).at(0));
    EXPECT_EQ(trace.losses.negative_durations, 1u);
    EXPECT_EQ(trace.losses.dropped_events, 2u);
    EXPECT_EQ(trace.losses.implausible_times, 1u);
    EXPECT_EQ(trace.events.size(), 2u);
}

TEST_F(TraceNsysTest, ReadsPackedFilesAndLeavesTheFileAlone) {
    std::filesystem::path path = write_rows(kernel(100, 200, 0, 1, kA));
    std::string content = read_file(path, 1 << 20, "a trace");
    std::filesystem::path packed = folder_.file("a?b%41.sqlite.gz", gzip(content));
    EXPECT_EQ(read_nsys(packed).at(0).events.size(), 1u);
    std::filesystem::path odd = folder_.file("a?b%41.sqlite", content);
    EXPECT_EQ(read_nsys(odd).at(0).events.size(), 1u);
    EXPECT_EQ(read_file(odd, 1 << 20, "a trace"), content);
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
        EXPECT_NE(entry.path().extension(), ".sqlite-journal");
}

TEST_F(TraceNsysTest, SaysWhatIsMissing) {
    EXPECT_EQ(error_of(folder_.file("empty.sqlite", "")), whole_error("is empty"));
    EXPECT_EQ(error_of(folder_.file("text.sqlite", "hello")), whole_error("is not an SQLite file"));
    EXPECT_EQ(error_of(write("CREATE TABLE songs (id); CREATE TABLE albums (id);")),
              whole_error("is an SQLite file of another program: its tables are \"albums, songs\", "
                          "StringIds is not among them"));
    EXPECT_EQ(error_of(write("CREATE TABLE META_DATA_EXPORT (name);")),
              whole_error("has no table StringIds, which holds the names"));
    EXPECT_EQ(error_of(write("CREATE TABLE StringIds (id, value);")),
              whole_error("contains no GPU work: it has no table CUPTI_ACTIVITY_KIND_KERNEL, "
                          "CUPTI_ACTIVITY_KIND_MEMCPY or CUPTI_ACTIVITY_KIND_MEMSET",
                          true));
    EXPECT_EQ(error_of(write("CREATE TABLE StringIds (id, value);"
                             "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start);")),
              whole_error("has no column end in table CUPTI_ACTIVITY_KIND_KERNEL"));
    EXPECT_EQ(error_of(write_rows("")), whole_error("contains no events", true));
}

TEST_F(TraceNsysTest, NeverReadsPastAFileThatWasCutOff) {
    std::string rows;
    for (int i = 0; i < 400; ++i) rows += kernel(i * 100, i * 100 + 50, 0, i, kA);
    std::string content = read_file(write_rows(rows), 1 << 20, "a trace");
    EXPECT_EQ(error_of(folder_.file("half.sqlite", content.substr(0, 20'480))),
              whole_error(fmt::format("is cut off: 20.0 KiB of {:.1f} KiB",
                                      static_cast<double>(content.size()) / 1024)));
    for (std::size_t size = 1; size < content.size(); size += 997) {
        std::string part = content.substr(0, size);
        EXPECT_THROW((void)parse_nsys(part, "t"), UserError) << size;
    }
}

TEST_F(TraceNsysTest, SurvivesBytesThatAreNotWhatTheyShouldBe) {
    std::string rows;
    for (int i = 0; i < 200; ++i) rows += kernel(i * 100, i * 100 + 50, 0, i, kA);
    std::string content = read_file(write_rows(rows), 1 << 20, "a trace");
    std::uint32_t random = 1;
    for (int i = 0; i < 300; ++i) {
        std::string broken = content;
        for (int j = 0; j < 1 + i % 8; ++j) {
            random = random * 1664525 + 1013904223;
            broken[100 + random % (broken.size() - 100)] = static_cast<char>(random >> 24);
        }
        try {
            EXPECT_FALSE(parse_nsys(broken, "t").empty());
        } catch (const UserError&) {  // named as damaged: as good
        }
    }
}

TEST_F(TraceNsysTest, IgnoresViewsAndComputedColumns) {
    std::string endless =
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS start, x AS "
        "end FROM n";
    EXPECT_EQ(error_of(write("CREATE TABLE StringIds (id, value);"
                             "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS " +
                             endless + ";")),
              whole_error("contains no GPU work: it has no table CUPTI_ACTIVITY_KIND_KERNEL, "
                          "CUPTI_ACTIVITY_KIND_MEMCPY or CUPTI_ACTIVITY_KIND_MEMSET",
                          true));
    EXPECT_EQ(
        error_of(write("CREATE TABLE StringIds (id, value);"
                       "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end AS (start * 2));")),
        whole_error("has no column end in table CUPTI_ACTIVITY_KIND_KERNEL"));
}

TEST_F(TraceNsysTest, AgreesWithARealExportOfTwoGpus) {
    std::filesystem::path path =
        std::filesystem::path(SATURATE_SOURCE_DIR) / "../shared/traces/nsys-2gpu.sqlite.gz";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
    std::vector<Trace> traces = read_nsys(path);
    ASSERT_EQ(traces.size(), 2u);
    // Of first to last GPU event; an independent query of the file gave 91.3 and 89.5 %.
    for (auto [rank, expected] : {std::pair(0u, 91.3), std::pair(1u, 89.5)}) {
        const Trace& trace = traces[rank];
        std::int64_t busy = 0, first = -1, end = 0;
        for (const Event& each : trace.events) {
            if (!is_gpu(each.category)) continue;
            if (first < 0) first = end = each.start_ns;
            busy += std::max<std::int64_t>(each.end_ns() - std::max(end, each.start_ns), 0);
            end = std::max(end, each.end_ns());
        }
        EXPECT_NEAR(100.0 * static_cast<double>(busy) / static_cast<double>(end - first), expected,
                    0.1);
        EXPECT_EQ(trace.losses.lost(), 0u);
    }
}

}  // namespace
}  // namespace saturate
