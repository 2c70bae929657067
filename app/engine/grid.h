// SPDX-License-Identifier: Apache-2.0
// train --grid: one run for every combination of some settings, and the best of them.
#pragma once

#include <string>
#include <vector>

#include "train_run.h"

namespace saturate {

// "hidden_size=64,128" and "sequence_length=30,60" give four lists of key=value. Throws UserError:
// no '=', no value, a key twice, more than 1000 points.
[[nodiscard]] std::vector<std::vector<std::string>> grid_points(
    const std::vector<std::string>& axes);

struct GridRun {
    std::vector<std::string> values;
    TrainOutcome outcome;
};

// Runs every point in turn, each into its own folder below that of the request, from the same seed.
// An interrupted run ends the grid; a run that failed is kept and named.
[[nodiscard]] std::vector<GridRun> run_grid(const TrainRequest& request,
                                            const std::vector<std::string>& axes,
                                            const JobRegistry& jobs);

// Best first; runs without a metric last.
[[nodiscard]] std::string grid_text(const std::vector<GridRun>& runs);
[[nodiscard]] Json grid_json(const std::vector<GridRun>& runs);
[[nodiscard]] int grid_status(const std::vector<GridRun>& runs);

}  // namespace saturate
