// SPDX-License-Identifier: Apache-2.0
// `--serve` of fix, monitor, run, train and tune: `saturate serve` as a process of its own beside the
// job. It reads the record and ends with us; no client of it can hold the job up.
#pragma once

#include <filesystem>
#include <string>

namespace saturate {

// Starts it for the runs in `folder`, which need not be there yet, and gives the address of the
// page. `address` is what --serve was given, empty for the usual. Throws UserError when it cannot
// serve; why is on stderr then.
std::string start_page_server(const std::filesystem::path& folder, const std::string& address);

}  // namespace saturate
