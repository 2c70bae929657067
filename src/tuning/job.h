// SPDX-License-Identifier: Apache-2.0
// What is measured: a job that `train` runs, a command of the user's, or a command of theirs that
// reads a configuration file, named {config} in it.
#pragma once

#include <string>
#include <vector>

namespace saturate {

struct Job {
    std::string config;                // of `train`, or of the command; may be empty with one
    std::vector<std::string> command;  // words with {placeholders}; empty: `train` runs it

    // `train` runs it: it can leave its loader out, tells its losses, and its settings are keys.
    [[nodiscard]] bool is_ours() const { return command.empty(); }
    // Settings of the command are keys of a file: each trial gets a copy of it.
    [[nodiscard]] bool has_file() const { return !command.empty() && !config.empty(); }
};

}  // namespace saturate
