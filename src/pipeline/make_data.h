// SPDX-License-Identifier: Apache-2.0
// Makes data for the reference jobs as real files: PNG and JPEG pictures, tables as CSV or npy.
// Generated from a seed, the same everywhere, with something to learn. Called by `data make`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace saturate {

struct MakeDataSettings {
    std::string job;            // one of jobs_with_data()
    std::filesystem::path out;  // folder, or file of a table; empty: as in the job's configuration
    std::int64_t samples = 0;   // pictures, or rows of a table; 0: enough to try it out
    std::uint64_t seed = 1;
};

struct MadeData {
    std::filesystem::path path;
    std::int64_t training = 0, validation = 0;  // pictures; for tables `training` has all rows
    std::uint64_t bytes = 0;
    std::string layout;  // one line: which files are where
};

[[nodiscard]] std::vector<std::string> jobs_with_data();

// The path in configs/<job>_before.yaml, where make_data() writes for a job of jobs_with_data().
[[nodiscard]] std::filesystem::path usual_data_path(const std::string& job);

// Calls `progress` now and then with the number made so far. Throws UserError if the target exists
// and is not empty, or the job has no data.
MadeData make_data(const MakeDataSettings& settings,
                   const std::function<void(std::int64_t made, std::int64_t samples)>& progress);

}  // namespace saturate
