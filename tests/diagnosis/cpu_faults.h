// SPDX-License-Identifier: Apache-2.0
// What the CPU traces of record_traces.py must show: each its own fault and none of the others',
// the healthy one none.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "diagnosis/diagnosis.h"
#include "diagnosis/trace_read.h"

namespace saturate {

inline const std::map<std::string, std::string> kFaults = {{"jitter", "F05"},
                                                           {"python_between", "F11"},
                                                           {"per_tensor_optimizer", "F13"},
                                                           {"zero_grad_by_kernels", "F14"},
                                                           {"misaligned", "F21"},
                                                           {"checkpoint", "F23"},
                                                           {"recompilation", "F24"},
                                                           {"bias_before_norm", "F26"},
                                                           {"healthy", ""}};

// Each trace of the folder holds its own fault; a fault of another is a false alarm.
inline void expect_faults(const std::filesystem::path& folder) {
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

}  // namespace saturate
