// SPDX-License-Identifier: Apache-2.0
// Opens the data that a configuration names: inspects `data` and `job` and creates the sources.
// Used by the jobs of workloads/ and by `bench loader`, so that both read the data the same way.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "config/settings.h"
#include "pipeline/loader.h"
#include "pipeline/source.h"

namespace saturate {

struct OpenedData {
    std::shared_ptr<const SampleSource> training;
    std::shared_ptr<const SampleSource> validation;  // null: the data has none
    std::string what;                       // "images in classes", "windows of a table", ...
    std::vector<std::string> classes = {};  // for images in classes, by label
    // For windows: the window column that is forecast, and its scale.
    std::int64_t target_column = 0;
    double target_mean = 0;
    double target_deviation = 1;
};

// Opens one of these under `data`:
//   a CSV or npy table: windows of it; the last fifth of the time is for validation
//   an npy or npz file, or a folder of npy files: arrays
//   a folder of tar files: shards
//   a folder of images: in classes, as pairs (input/, target/), with labels.csv, or alone
// A folder with train/ and val/ (or valid/, validation/, test/) has its parts there; otherwise one
// of every ten samples is for validation. Relative paths are looked up in the working folder, then
// in the configuration's folder. `cache: ram` or `disk` caches decoded images of a folder within
// these limits. Throws UserError with the place in the configuration.
struct CacheLimits {
    std::uint64_t memory_bytes = 0;     // 0: a quarter of the machine's memory
    std::uint64_t disk_bytes = 0;       // 0: half of the free space there
    std::filesystem::path folder = {};  // empty: $SATURATE_CACHE or ~/.cache/saturate, samples/
};
[[nodiscard]] OpenedData open_data(const Settings& settings, const CacheLimits& limits = {});

// Takes the loader's settings from the configuration: batch size, workers, prefetch, seed.
[[nodiscard]] LoaderSettings loader_settings(const Settings& settings);

// all_but_each_tenth() leaves out one sample of every ten; each_tenth() has only those. The choice
// within each ten is random, but always the same.
[[nodiscard]] std::shared_ptr<const SampleSource> all_but_each_tenth(
    std::shared_ptr<const SampleSource> source);
[[nodiscard]] std::shared_ptr<const SampleSource> each_tenth(
    std::shared_ptr<const SampleSource> source);

}  // namespace saturate
