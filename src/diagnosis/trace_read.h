// SPDX-License-Identifier: Apache-2.0
// Reads profiler traces (PyTorch JSON: plain, gzip, Zstandard) in one pass and in pieces, so that
// memory follows the number of events and not the size of the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "diagnosis/trace.h"

namespace saturate {

struct TraceOptions {
    std::uint64_t limit_bytes = std::uint64_t{4} << 30;  // unpacked
};

// Throws UserError for what is no trace, naming what it is where it can be seen (a TensorBoard
// event file, an XPlane file, other JSON). What is broken inside a trace is repaired or dropped,
// and counted.
[[nodiscard]] Trace read_trace(const std::filesystem::path& path, const TraceOptions& options = {});
[[nodiscard]] Trace parse_trace(std::string_view bytes, const std::string& file,
                                const TraceOptions& options = {});

// One trace per rank, read in parallel (a file of Nsight Systems may hold several), in the order of
// their ranks (files without one keep theirs).
[[nodiscard]] std::vector<Trace> read_traces(const std::vector<std::filesystem::path>& paths,
                                             const TraceOptions& options = {});

// What a file that is not JSON seems to be, by its first bytes: "a TensorBoard event file"; empty
// when unknown.
[[nodiscard]] std::string_view foreign_kind(std::string_view first_bytes);

}  // namespace saturate
