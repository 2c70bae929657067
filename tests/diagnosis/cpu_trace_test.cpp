// SPDX-License-Identifier: Apache-2.0
// CPU traces by the real PyTorch profiler (record_traces.py): each shows its own fault and none of
// the others', the healthy one none. From files in traces/, and recorded anew where a Python with
// PyTorch is there.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "diagnosis/diagnosis.h"
#include "diagnosis/trace_read.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

fs::path source(std::string_view name) {
    return fs::path(SATURATE_SOURCE_DIR) / "tests" / "diagnosis" / name;
}

const std::map<std::string, std::string> kFaults = {{"jitter", "F05"},
                                                    {"python_between", "F11"},
                                                    {"per_tensor_optimizer", "F13"},
                                                    {"zero_grad_by_kernels", "F14"},
                                                    {"misaligned", "F21"},
                                                    {"checkpoint", "F23"},
                                                    {"recompilation", "F24"},
                                                    {"bias_before_norm", "F26"},
                                                    {"healthy", ""}};

// Each trace of the folder holds its own fault; a fault of another is a false alarm.
void expect_faults(const fs::path& folder) {
    for (const auto& [name, id] : kFaults) {
        Diagnosis diagnosis = diagnose_trace(read_trace(folder / (name + ".json.gz")));
        EXPECT_FALSE(diagnosis.busy_percent) << name;
        EXPECT_GE(diagnosis.steps, 5) << name;  // the first may be the profiler's start
        bool found = id.empty();
        for (const Finding& finding : diagnosis.findings) {
            found |= finding.id == id;
            for (const auto& [other, fault] : kFaults) {
                // Without stacks, host time between operators is python's in any trace.
                if (finding.id == fault && finding.id != "F11") {
                    EXPECT_EQ(fault, id) << name << " shows the fault of " << other;
                }
            }
        }
        EXPECT_TRUE(found) << name << " does not show " << id;
    }
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

TEST(CpuTraceTest, TracesOfThePyTorchThatIsHereShowTheirFaults) {
    fs::path root = SATURATE_SOURCE_DIR;
    Ran python = run({(root / "tests/support/python_torch").string()});
    if (python.status != 0) GTEST_SKIP() << python.err;
    TemporaryFolder folder;
    std::string program = python.out.substr(0, python.out.find('\n'));
    Ran made = run({program, source("record_traces.py").string(), folder.path().string()});
    ASSERT_EQ(made.status, 0) << made.err;
    expect_faults(folder.path());
}

}  // namespace
}  // namespace saturate
