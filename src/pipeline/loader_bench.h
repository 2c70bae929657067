// SPDX-License-Identifier: Apache-2.0
// How fast a source can be loaded on this machine: by worker count, and without any loader around
// it as the bound. Used by `saturate bench loader`.
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
    double seconds = 20;  // in all
    int rounds = 3;       // every point once per round, so that a disturbance hits all of them
    // Told before each point: what comes, and the share that is done.
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
    Spread limit;  // samples per second: every core in write(), nothing else
    [[nodiscard]] const LoaderBenchPoint& best() const;  // of those with a number of workers
};

// The worker counts that are tried: 0, 1, 2, 4 ... up to the cores, and auto (-1).
[[nodiscard]] std::vector<int> worker_counts(int cores);

[[nodiscard]] LoaderBench bench_loader(const std::shared_ptr<const SampleSource>& source,
                                       const LoaderSettings& settings, const LoaderBenchPlan& plan);

}  // namespace saturate
