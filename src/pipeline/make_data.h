// SPDX-License-Identifier: Apache-2.0
// Data for the reference jobs, as real files: pictures as PNG and JPEG, tables as CSV or npy.
// Made from a seed, the same everywhere; something can be learnt from it. Called by `data make`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace saturate {

struct MakeDataSettings {
    std::string job;  // one of jobs_with_data()
    std::filesystem::path
        out;                   // folder, or file of a table; empty: as the job's configuration says
    std::int64_t samples = 0;  // pictures, or rows of a table; 0: enough for a try
    std::uint64_t seed = 1;
};

struct MadeData {
    std::filesystem::path path;
    std::int64_t training = 0, validation = 0;  // pictures; rows of a table are all `training`
    std::uint64_t bytes = 0;
    std::string layout;  // one line: what lies where
};

[[nodiscard]] std::vector<std::string> jobs_with_data();

// Where make_data writes for a job of jobs_with_data(), as configs/<job>_before.yaml has it.
[[nodiscard]] std::filesystem::path usual_data_path(const std::string& job);

// `made` is called now and then with how many of `samples` are there. Throws UserError when
// something that is not empty lies there already, or the job has no data.
MadeData make_data(const MakeDataSettings& settings,
                   const std::function<void(std::int64_t made, std::int64_t samples)>& progress);

}  // namespace saturate
