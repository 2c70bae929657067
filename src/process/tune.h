// SPDX-License-Identifier: Apache-2.0
// The measured search with trials that are child processes, everything kept in one folder.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "tuning/conductor.h"

namespace saturate {

// Whoever shows what goes on; each may be null.
struct TuneListener {
    std::function<void(int number, const Tried&)> on_trial;
    std::function<void(const std::string&)> on_line;
    std::function<void(const std::string& what, double seconds)> on_working;  // for now
};

// Makes the folder of the request. Throws UserError when it is there and not empty.
void make_tune_folder(const TuneRequest& request);

// Throws UserError: another search works on the device, no trial ran, or the budget is too small.
[[nodiscard]] TuneAnswer tune(const TuneRequest& request, const TuneListener& listener);

}  // namespace saturate
