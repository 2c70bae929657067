// SPDX-License-Identifier: Apache-2.0
// Reads what Nsight Systems exports (`nsys export --type sqlite`) into the event table. Called
// by the trace reader for files that start as a database does.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/trace.h"
#include "diagnosis/trace_read.h"

namespace saturate {

// One trace per process that used a GPU: correlation ids and steps count anew in each. With several
// they are ranks, in the order of their devices. A packed file (.gz, .zst) is unpacked into memory.
// Throws UserError for what is no database, is cut off or damaged, or lacks a table, naming it.
[[nodiscard]] std::vector<Trace> read_nsys(const std::filesystem::path& path,
                                           const TraceOptions& options = {});
[[nodiscard]] std::vector<Trace> parse_nsys(std::string bytes, const std::string& file);

}  // namespace saturate
