// SPDX-License-Identifier: Apache-2.0
// Keeps batches ready ahead of the trainer. Worker threads take single samples (several at once
// when samples are cheap) and write them straight into the batch's slab; batches come out in order,
// the same for any number of workers. next(), state() and adding up stats from one thread.
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
    int workers = -1;                  // threads; -1: auto; 0: in the calling thread
    int cores = 0;                     // this process may use; 0: those of its affinity mask
    int prefetch_factor = 2;           // batches per worker ...
    int held = 2;                      // ... and so many that the consumer holds: the trainer's
                                       // batch, and the one whose copy is still under way
    std::uint64_t prefetch_bytes = 0;  // all of them in no more than this; 0: no limit
    bool shuffle = true;
    bool drop_last = true;
    std::vector<double> weights = {};  // per sample: draws with replacement; empty: each once
    std::uint64_t seed = 0;
    Shard shard = {};
    std::int64_t bad_samples_max = 100;            // different ones; more end the run
    int retries = 3;                               // of a busy sample, ...
    std::chrono::milliseconds retry_pause{50};     // ... after this, then twice it, ...
    std::chrono::milliseconds sample_max{60000};   // no answer for so long ends the run
    std::shared_ptr<SlabMemory> memory = nullptr;  // null: ordinary memory
};

// Where the loader stands: what next() would give. Restored exactly, also with other workers.
struct LoaderState {
    std::int64_t epoch = 0;
    std::int64_t batch = 0;  // batches of this epoch already given out
    bool operator==(const LoaderState&) const = default;
};

struct LoaderStats {
    std::int64_t batches = 0, samples = 0;  // given out
    std::int64_t bad_samples = 0, retries = 0, read_bytes = 0, cache_hits = 0;
    std::int64_t read_ns = 0, decode_ns = 0, transform_ns = 0;  // summed over workers
    std::int64_t busy_ns = 0;           // workers in write(), these three included
    std::int64_t consumer_wait_ns = 0;  // next() had to wait: the loader is the brake
    std::int64_t worker_wait_ns = 0;    // workers had nothing to do: the trainer is the brake
    std::int64_t elapsed_ns = 0;        // since the first next()
    int workers = 0, cores = 0;
    std::uint64_t memory_bytes = 0;  // of the slabs
};
// How many batches may be loaded ahead, however many workers there come to be.
struct LoaderRoom {
    std::int64_t batches = 0;
    std::int64_t batches_wanted = 0;  // by prefetch_factor; prefetch_bytes may allow fewer
    std::uint64_t bytes = 0;          // of all slabs, those of the trainer included
};
// One line when the loader is the brake: "decode 71 %, 2 of 2 cores full: fewer pixels, ...".
// Empty when it is not.
[[nodiscard]] std::string why_slow(const LoaderStats& stats);

class Loader {
  public:
    // Throws UserError when no batch comes out of these settings. `recorder` outlives the loader.
    Loader(std::shared_ptr<const SampleSource> source, LoaderSettings settings, Recorder& recorder,
           LoaderState start = {});
    // Stops and joins: as soon as the samples under way are written.
    ~Loader();

    // The next batch of this epoch; nullopt once at its end, after which the next epoch begins (it
    // is prefetched meanwhile). Throws a worker's error when the batch that it belongs to is due;
    // not to be called again after that.
    [[nodiscard]] std::optional<Batch> next();

    // next() would not wait. Without workers it is the caller who loads, so never in mid-epoch.
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
