// SPDX-License-Identifier: Apache-2.0
// Has Python compile a traced loss into a package that C++ can load, and caches the packages. Used
// by compiled_step.cpp.
#pragma once

#include <filesystem>
#include <string>

#include "engine/compile_trace.h"
#include "engine/compiled_step.h"

namespace saturate {

// The cache files of a graph. The key covers the graph (with shapes and precision), torch version,
// CPU and settings.
struct GraphFiles {
    std::filesystem::path package;  // <key>.pt2
    std::filesystem::path verdict;  // <key>.slower: why it is not worth using
    std::filesystem::path log;      // <key>.log: Python's output
};
[[nodiscard]] GraphFiles graph_files(const TracedLoss& traced, const CompileSettings& settings);

// Builds the package. Returns why there is none, or an empty string.
[[nodiscard]] std::string build_graph(const TracedLoss& traced, const GraphFiles& files,
                                      const CompileSettings& settings);

}  // namespace saturate
