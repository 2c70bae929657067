// SPDX-License-Identifier: Apache-2.0
// A reference job as its write-up had it, searched and proven on a device: what demo shows of one
// and bench gpu of all of them.
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
    Diagnosis diagnosis;  // of the job as it was
};

// Throws UserError when it is there and not empty.
void make_demo_folder(const std::filesystem::path& folder);

// Into such a folder. `seconds` are for everything, the making of data included; the search gets at
// least `seconds_least`. Without a baseline (Ctrl-C) there is no diagnosis.
[[nodiscard]] DemoRun run_demo(const DemoJob& job, const std::string& device,
                               const std::filesystem::path& folder, double seconds,
                               double seconds_least, bool quiet);

}  // namespace saturate
