// SPDX-License-Identifier: Apache-2.0
// Runs a helper process to its end within limits and keeps its output. Used for the reader and the
// checker of sources. Blocks the calling thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace saturate {

struct CapturedLimits {
    std::chrono::seconds time{60};
    std::uint64_t memory_bytes = 4ULL << 30;  // of address space
    std::uint64_t output_bytes = 256ULL << 20;
};

struct Captured {
    enum class End { exited, out_of_time, too_much_output, not_started };
    End end = End::exited;
    int status = 0;  // exit code, or 128 + signal; errno if it was not started
    std::string out;
    std::string err;  // its last bytes
};

// Runs the command in the current folder with `input` as its stdin.
[[nodiscard]] Captured run_captured(const std::vector<std::string>& command,
                                    const std::string& input, const CapturedLimits& limits = {});

}  // namespace saturate
