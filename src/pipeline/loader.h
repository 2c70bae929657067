// SPDX-License-Identifier: Apache-2.0
// Keeps batches ready ahead of the trainer. Worker threads take single samples and write them
// straight into the batch's slab; batches come out in order. next() from one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/batch.h"
#include "pipeline/source.h"
#include "telemetry/recorder.h"

namespace saturate {

// One process of a data-parallel job. Every rank gets the same number of batches.
struct Shard {
    int rank = 0;
    int count = 1;
};

// Gives and takes back the memory of slabs; the engine passes one that page-locks it for a GPU.
class SlabMemory {
  public:
    virtual ~SlabMemory() = default;
    [[nodiscard]] virtual void* allocate(std::size_t bytes) = 0;
    virtual void release(void* memory, std::size_t bytes) noexcept = 0;
};

struct LoaderSettings {
    std::int64_t batch_size = 32;
    int workers = -1;                  // threads; -1: auto; 0: in the calling thread
    int prefetch_factor = 2;           // batches per worker ...
    std::uint64_t prefetch_bytes = 0;  // ... and no more than this; 0: no limit
    bool shuffle = true;
    bool drop_last = true;
    std::vector<double> weights;  // per sample: draws with replacement; empty: each once
    std::uint64_t seed = 0;
    Shard shard;
    std::int64_t bad_samples_max = 100;  // more end the run
    std::shared_ptr<SlabMemory> memory;  // null: ordinary memory
};

// Where the loader stands: what next() would give. Restored exactly, also with other workers.
struct LoaderState {
    std::int64_t epoch = 0;
    std::int64_t batch = 0;  // batches of this epoch already given out
};

struct LoaderStats {
    std::int64_t samples = 0, bad_samples = 0, read_bytes = 0, cache_hits = 0;
    std::int64_t read_ns = 0, decode_ns = 0, transform_ns = 0;  // summed over workers
    std::int64_t consumer_wait_ns = 0;  // next() had to wait: the loader is the brake
    std::int64_t worker_wait_ns = 0;    // workers had nothing to do: the trainer is the brake
    int workers = 0;
    std::uint64_t memory_bytes = 0;  // of the slabs
};

class Loader {
  public:
    Loader(std::shared_ptr<const SampleSource> source, LoaderSettings settings, Recorder& recorder,
           LoaderState start = {});
    ~Loader();  // stops and joins

    // The next batch of this epoch; nullopt once at its end, after which the next epoch begins (it
    // is prefetched meanwhile). Rethrows the first worker error.
    [[nodiscard]] std::optional<Batch> next();

    [[nodiscard]] std::int64_t batches_per_epoch() const;
    [[nodiscard]] LoaderState state() const;
    [[nodiscard]] LoaderStats stats() const;
    // One line when the loader is the brake: "decode 71 %, 2 of 2 cores full: fewer pixels, ...".
    [[nodiscard]] std::string why_slow() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
