// SPDX-License-Identifier: Apache-2.0
// What is measured: a job that `train` runs, a command of the user's, a command of theirs that reads
// a configuration file, named {config} in it, or a command with the project that it runs in.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace saturate {

struct Job {
    std::string config;                // of `train`, or of the command; may be empty with one
    std::vector<std::string> command;  // words with {placeholders}; empty: `train` runs it
    std::filesystem::path project;     // the folder that the command runs in, for `fix`; else empty

    // `train` runs it: it can leave its loader out, tells its losses, and its settings are keys.
    [[nodiscard]] bool is_ours() const { return command.empty(); }
    // Settings of the command are keys of a file: each trial gets a copy of it.
    [[nodiscard]] bool has_file() const { return !command.empty() && !config.empty(); }
    // Settings of the command stand in its sources: each trial gets a copy of the folder.
    [[nodiscard]] bool has_project() const { return !command.empty() && !project.empty(); }
};

}  // namespace saturate
