// SPDX-License-Identifier: Apache-2.0
// The CPU traces of record_traces.py, recorded anew with the PyTorch that is here.
#include <gtest/gtest.h>

#include "diagnosis/cpu_faults.h"
#include "support/run.h"

namespace saturate {
namespace {

TEST(CpuTraceTest, TracesOfThePyTorchThatIsHereShowTheirFaults) {
    std::filesystem::path root = SATURATE_SOURCE_DIR;
    Ran python = run({(root / "tests/support/python_torch").string()});
    if (python.status != 0) GTEST_SKIP() << python.err;
    TemporaryFolder folder;
    std::string program = python.out.substr(0, python.out.find('\n'));
    Ran made = run(
        {program, (root / "tests/diagnosis/record_traces.py").string(), folder.path().string()});
    ASSERT_EQ(made.status, 0) << made.err;
    expect_faults(folder.path());
}

}  // namespace
}  // namespace saturate
