// SPDX-License-Identifier: Apache-2.0
// Checks the CPU traces of record_traces.py: each must show its own fault and no other, and the
// healthy one no fault at all.
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

// Expects each trace in the folder to show its own fault; any other fault is a false alarm.
inline void expect_faults(const std::filesystem::path& folder) {
    for (const auto& [name, id] : kFaults) {
        Diagnosis diagnosis = diagnose_trace(read_trace(folder / (name + ".json.gz")));
        EXPECT_FALSE(diagnosis.busy_percent) << name;
        EXPECT_GE(diagnosis.steps, 5) << name;  // the first step may be profiler start-up
        bool found = id.empty();
        for (const Finding& finding : diagnosis.findings) {
            found |= finding.id == id;
            for (const auto& [other, fault] : kFaults) {
                // Without stacks, host time between operators counts as Python in any trace.
                if (finding.id == fault && finding.id != "F11") {
                    EXPECT_EQ(fault, id) << name << " shows the fault of " << other;
                }
            }
        }
        EXPECT_TRUE(found) << name << " does not show " << id;
    }
}

}  // namespace saturate
