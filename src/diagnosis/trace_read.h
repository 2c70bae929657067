// SPDX-License-Identifier: Apache-2.0
// Reads profiler traces (PyTorch JSON: plain, gzip, Zstandard) piece by piece in one pass, so that
// memory grows with the number of events and not with the size of the file.
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

// Throws UserError if the file is not a trace; the message says what it is if that is known (a
// TensorBoard event file, an XPlane file, other JSON). Broken events inside a trace are repaired or
// dropped, and counted.
[[nodiscard]] Trace read_trace(const std::filesystem::path& path, const TraceOptions& options = {});
[[nodiscard]] Trace parse_trace(std::string_view bytes, const std::string& file,
                                const TraceOptions& options = {});

// Reads the files in parallel and returns one trace per rank; a file of Nsight Systems may hold
// several. Traces are sorted by rank; those without a rank come last, in the order of the files.
[[nodiscard]] std::vector<Trace> read_traces(const std::vector<std::filesystem::path>& paths,
                                             const TraceOptions& options = {});

// Guesses from the first bytes what a file that is not JSON is: "a TensorBoard event file", or ""
// if unknown.
[[nodiscard]] std::string_view foreign_kind(std::string_view first_bytes);

}  // namespace saturate
