// SPDX-License-Identifier: Apache-2.0
// What is measured: a job that `train` runs, or a command of the user's.
#pragma once

#include <string>
#include <vector>

namespace saturate {

struct Job {
    std::string config;                // of `train`; empty with a command
    std::vector<std::string> command;  // words with {placeholders}; empty with a configuration

    // `train` runs it: it can leave its loader out, tells its losses, and its settings are keys.
    [[nodiscard]] bool is_ours() const { return command.empty(); }
};

}  // namespace saturate
