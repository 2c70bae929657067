// SPDX-License-Identifier: Apache-2.0
// Writes samples into a slab: asks the order for the index and the source for the bytes, retries
// busy storage, and replaces bad samples. All workers call it at once, each with
// its own WorkerMemory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include "pipeline/faults.h"
#include "pipeline/loader.h"

namespace saturate {

struct WorkerMemory {
    std::unique_ptr<Scratch> scratch;
    std::vector<std::byte*> places;
    // The sample being written, so that a consumer that waits too long can name it; -1: none.
    std::atomic<std::int64_t> sample = -1;
    std::atomic<std::int64_t> since_ns = 0;
};

// Consecutive samples of one batch.
struct Run {
    std::int64_t epoch = 0;
    std::int64_t batch = 0;
    Slab* slab = nullptr;
    std::int64_t first = 0;  // first row within the batch
    std::int64_t count = 0;
};

class Filler {
  public:
    Filler(const SampleSource& source, const SampleOrder& sample_order,
           const LoaderSettings& settings, Faults& faults);

    [[nodiscard]] std::unique_ptr<WorkerMemory> make_memory() const;
    // Returns early if stopped. Throws Failure with the sample's name.
    void fill(const Run& run, WorkerMemory& memory, const std::stop_token& stop,
              SampleCost& cost) const;
    [[nodiscard]] std::int64_t retries() const { return retries_; }

  private:
    void fill_row(const Run& run, std::int64_t row, const RunOrder& order, WorkerMemory& memory,
                  const std::stop_token& stop, SampleCost& cost) const;
    [[nodiscard]] bool write(const SampleDraw& draw, WorkerMemory& memory,
                             const std::stop_token& stop, SampleCost& cost) const;

    const SampleSource& source_;
    const SampleOrder& sample_order_;
    const LoaderSettings& settings_;
    Faults& faults_;
    std::vector<std::size_t> sample_bytes_;
    mutable std::atomic<std::int64_t> retries_ = 0;  // only a statistic
};

}  // namespace saturate
