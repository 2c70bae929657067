// SPDX-License-Identifier: Apache-2.0
// Searches and proves faster settings for a reference job, starting from the settings of its
// write-up. `demo` shows one job, `bench gpu` all of them.
#pragma once

#include <filesystem>
#include <string>

#include "diagnosis/diagnosis.h"
#include "report/demo_text.h"
#include "tuning/conductor.h"

namespace saturate {

struct DemoRun {
    TuneRequest request;
    TuneAnswer answer;
    Diagnosis diagnosis;  // of the unchanged job
};

// Throws UserError if the folder exists and is not empty.
void make_demo_folder(const std::filesystem::path& folder);

// Writes into a folder of make_demo_folder(). `seconds` include making the data, but the search
// gets at least `seconds_least`. Without a baseline (Ctrl-C) there is no diagnosis.
[[nodiscard]] DemoRun run_demo(const DemoJob& job, const std::string& device,
                               const std::filesystem::path& folder, double seconds,
                               double seconds_least, bool quiet);

}  // namespace saturate
