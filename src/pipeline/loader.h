// SPDX-License-Identifier: Apache-2.0
// Keeps batches ready ahead of the trainer. Worker threads take single samples (several at once if
// they are cheap) and write them straight into the batch's slab. Batches come out in order and are
// the same for any number of workers. next() and state() from one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/batch.h"
#include "pipeline/sample_order.h"
#include "pipeline/slab.h"
#include "pipeline/source.h"
#include "telemetry/recorder.h"

namespace saturate {

struct LoaderSettings {
    std::int64_t batch_size = 32;
    int workers = -1;                  // threads; -1: auto; 0: load in the calling thread
    int cores = 0;                     // that this process may use; 0: those of its affinity mask
    int prefetch_factor = 2;           // batches per worker ...
    int held = 2;                      // ... plus as many as the consumer holds: the trainer's
                                       // current batch, and the one still being copied
    std::uint64_t prefetch_bytes = 0;  // memory limit for all of them together; 0: none
    bool shuffle = true;
    bool drop_last = true;
    std::vector<double> weights = {};  // per sample: draw with replacement; empty: each once
    std::uint64_t seed = 0;
    Shard shard = {};
    std::int64_t bad_samples_max = 100;            // bad samples; more different ones end the run
    int retries = 3;                               // of a busy sample, ...
    std::chrono::milliseconds retry_pause{50};     // ... after this pause, which then doubles, ...
    std::chrono::milliseconds sample_max{60000};   // one that takes longer ends the run
    std::shared_ptr<SlabMemory> memory = nullptr;  // null: ordinary memory
};

// The loader's position, i.e. the batch that next() would return. Restored exactly, even with
// another number of workers.
struct LoaderState {
    std::int64_t epoch = 0;
    std::int64_t batch = 0;  // batches of this epoch already returned
    bool operator==(const LoaderState&) const = default;
};

struct LoaderStats {
    std::int64_t batches = 0, samples = 0;  // returned by next()
    std::int64_t bad_samples = 0, retries = 0, read_bytes = 0, cache_hits = 0;
    std::int64_t read_ns = 0, decode_ns = 0, transform_ns = 0;  // summed over workers
    std::int64_t busy_ns = 0;           // of workers in write(), including these three
    std::int64_t consumer_wait_ns = 0;  // next() had to wait: the loader is the bottleneck
    std::int64_t worker_wait_ns = 0;    // workers had no work: the trainer is the bottleneck
    std::int64_t elapsed_ns = 0;        // since the first next()
    int workers = 0, cores = 0;
    std::uint64_t memory_bytes = 0;  // of the slabs
};
// How many batches may be loaded ahead, for any number of workers.
struct LoaderRoom {
    std::int64_t batches = 0;
    std::int64_t batches_wanted = 0;  // by prefetch_factor; prefetch_bytes may allow fewer
    std::uint64_t bytes = 0;          // of all slabs, including those the trainer holds
};
// Explains in one line why the loader is the bottleneck: "decode 71 %, 2 of 2 cores full: fewer
// pixels, ...". Empty if it is not.
[[nodiscard]] std::string why_slow(const LoaderStats& stats);

class Loader {
  public:
    // Throws UserError if these settings give no batch. `recorder` outlives the loader.
    Loader(std::shared_ptr<const SampleSource> source, LoaderSettings settings, Recorder& recorder,
           LoaderState start = {});
    // Stops and joins the workers once the samples being written are complete.
    ~Loader();

    // Returns the next batch of this epoch, or nullopt once at its end; then the next epoch begins,
    // which is already being prefetched. Throws a worker's error when its batch is due; do not call
    // it again after that.
    [[nodiscard]] std::optional<Batch> next();

    // True if next() would not wait. Without workers the caller loads, so false in mid-epoch.
    [[nodiscard]] bool is_ready() const;

    [[nodiscard]] std::int64_t batches_per_epoch() const;
    [[nodiscard]] LoaderRoom room() const;
    [[nodiscard]] LoaderState state() const;
    [[nodiscard]] LoaderStats stats() const;  // any thread
    [[nodiscard]] std::string why_slow() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace saturate
