// SPDX-License-Identifier: Apache-2.0
// Measures how fast a source can be loaded on this machine: for each number of workers, and without
// a loader as the upper limit. Used by `saturate bench loader`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "pipeline/loader.h"
#include "telemetry/record.h"

namespace saturate {

struct LoaderBenchPlan {
    int cores = 1;
    double seconds = 20;  // in total
    int rounds = 3;       // each point once per round, so that a disturbance affects all of them
    // Called before each point with the point's name and the share already done.
    std::function<void(const std::string& what, double done)> progress = {};
};

struct LoaderBenchPoint {
    int workers = 0;  // -1: auto
    Spread samples_per_second;
    double first_batch_seconds = 0;
    LoaderStats stats;     // of the last round
    std::string why_slow;  // of the last round
};

struct LoaderBench {
    std::vector<LoaderBenchPoint> points;  // by workers, auto last
    Spread limit;  // samples per second with every core in write() and nothing else
    [[nodiscard]] const LoaderBenchPoint& best() const;  // without auto
};

// The worker counts to measure: 0, 1, 2, 4 ... up to the cores, and auto (-1).
[[nodiscard]] std::vector<int> worker_counts(int cores);

[[nodiscard]] LoaderBench bench_loader(const std::shared_ptr<const SampleSource>& source,
                                       const LoaderSettings& settings, const LoaderBenchPlan& plan);

}  // namespace saturate
