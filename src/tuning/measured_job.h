// SPDX-License-Identifier: Apache-2.0
// The job to measure: one that `train` runs, a user's command, a user's command that reads a
// configuration file (named {config} in the command), or a command with its project folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace saturate {

struct MeasuredJob {
    std::string config;  // file of `train` or of the command; may be empty for a command
    std::vector<std::string> command;  // words with {placeholders}; empty: `train` runs the job
    std::filesystem::path project;     // for `fix`: the folder that the command runs in; else empty

    // `train` runs the job: it can run without its loader and reports its losses.
    [[nodiscard]] bool is_ours() const { return command.empty(); }
    // The settings are in the sources: each trial gets its own copy of the folder.
    [[nodiscard]] bool has_project() const { return !command.empty() && !project.empty(); }
};

}  // namespace saturate
