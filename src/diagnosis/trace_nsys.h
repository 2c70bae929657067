// SPDX-License-Identifier: Apache-2.0
// Reads an export of Nsight Systems (`nsys export --type sqlite`) into the event table. The trace
// reader calls it for files that start like an SQLite database.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/trace.h"
#include "diagnosis/trace_read.h"

namespace saturate {

// Returns one trace per process that used a GPU, because correlation ids and steps start anew in
// each process. Several processes become ranks, in the order of their devices. A packed file (.gz,
// .zst) is unpacked into memory. Throws UserError if the file is not a database, is cut off or
// damaged, or lacks a table; the message names the table.
[[nodiscard]] std::vector<Trace> read_nsys(const std::filesystem::path& path,
                                           const TraceOptions& options = {});
[[nodiscard]] std::vector<Trace> parse_nsys(std::string bytes, const std::string& file);

}  // namespace saturate
