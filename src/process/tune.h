// SPDX-License-Identifier: Apache-2.0
// Runs the measured search with child processes as trials, and keeps everything in one folder.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tuning/conductor.h"

namespace saturate {

// Callbacks that show the progress; each may be null.
struct TuneListener {
    std::function<void(int number, const Tried&)> on_trial;
    std::function<void(const std::string&)> on_line;
    std::function<void(const std::string& what, double seconds)> on_working;  // again and again
};

// Makes the folder of the request. Throws UserError if it exists and is not empty.
void make_tune_folder(const TuneRequest& request);

// Throws UserError if another search uses the device, no trial ran, or the budget is too small.
[[nodiscard]] TuneAnswer tune(const TuneRequest& request, const TuneListener& listener);

}  // namespace saturate
