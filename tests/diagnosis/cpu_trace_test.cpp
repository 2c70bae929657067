// SPDX-License-Identifier: Apache-2.0
// CPU traces by the real PyTorch profiler, made by record_traces.py and kept in traces/. The slow
// tests record them anew.
#include <gtest/gtest.h>

#include <filesystem>

#include "cpu_faults.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

fs::path source(std::string_view name) {
    return fs::path(SATURATE_SOURCE_DIR) / "tests" / "diagnosis" / name;
}

TEST(CpuTraceTest, RecordedTracesShowTheirFaults) { expect_faults(source("traces")); }

TEST(CpuTraceTest, NamesTheFunctionThatTakesTheTime) {
    Diagnosis diagnosis = diagnose_trace(read_trace(source("traces") / "python_between.json.gz"));
    for (const Finding& finding : diagnosis.findings) {
        if (finding.id != "F11") continue;
        EXPECT_GT(finding.share_percent, 50);
        ASSERT_FALSE(finding.examples.empty());
        EXPECT_NE(finding.examples[0].text.find(": prepare ("), std::string::npos)
            << finding.examples[0].text;
    }
}

}  // namespace
}  // namespace saturate
