// SPDX-License-Identifier: Apache-2.0
// `--serve` of fix, monitor, run, train and tune: runs `saturate serve` as a separate process next
// to the job. It reads the record and ends with us. No client can hold up the job.
#pragma once

#include <filesystem>
#include <string>

namespace saturate {

// Starts the server for the runs in `folder`, which need not exist yet, and returns the address of
// the page. `address` is the value of --serve, or empty for the default. Throws UserError if the
// server cannot start; its reason is on stderr.
std::string start_page_server(const std::filesystem::path& folder, const std::string& address);

}  // namespace saturate
