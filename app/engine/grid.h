// SPDX-License-Identifier: Apache-2.0
// train --grid: runs every combination of some settings and ranks the results.
#pragma once

#include <string>
#include <vector>

#include "train_run.h"

namespace saturate {

// Returns the points as lists of key=value: "hidden_size=64,128" and "sequence_length=30,60" give
// four. Throws UserError for a missing '=' or value, a repeated key, or more than 1000 points.
[[nodiscard]] std::vector<std::vector<std::string>> grid_points(
    const std::vector<std::string>& axes);

struct GridRun {
    std::vector<std::string> values;
    TrainOutcome outcome;
};

// Runs the points one after the other with the same seed, each into a folder below that of the
// request. An interrupted run ends the grid; a failed run stays in the results.
[[nodiscard]] std::vector<GridRun> run_grid(const TrainRequest& request,
                                            const std::vector<std::string>& axes,
                                            const JobRegistry& jobs);

// Returns a table, best run first, runs without a metric last.
[[nodiscard]] std::string grid_text(const std::vector<GridRun>& runs);
[[nodiscard]] Json grid_json(const std::vector<GridRun>& runs);
[[nodiscard]] int grid_status(const std::vector<GridRun>& runs);

}  // namespace saturate
