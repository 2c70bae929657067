// SPDX-License-Identifier: Apache-2.0
#include "pipeline/loader.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/host.h"
#include "base/text.h"
#include "pipeline/loader_impl.h"

namespace saturate {

namespace {

constexpr std::int64_t kDecideEveryNs = 200'000'000;

}  // namespace

Loader::Impl::Impl(std::shared_ptr<const SampleSource> the_source, LoaderSettings the_settings,
                   Recorder& recorder, LoaderState start)
    : source(std::move(the_source)),
      settings(std::move(the_settings)),
      cores(settings.cores > 0 ? settings.cores : std::max(1, affinity_cores())),
      sample_order({.size = source->size(),
                    .neighbours = source->neighbours(),
                    .batch_size = settings.batch_size,
                    .shuffle = settings.shuffle,
                    .drop_last = settings.drop_last,
                    .weights = settings.weights,
                    .seed = settings.seed,
                    .shard = settings.shard}),
      per_epoch(sample_order.batches_per_epoch()),
      ring(std::make_shared<SlabRing>(source->fields(), settings.batch_size,
                                      settings.memory ? settings.memory : ordinary_memory())),
      faults(sample_order.drawable(), settings.bad_samples_max, recorder),
      filler(*source, sample_order, settings, faults),
      reporter(recorder),
      position(start),
      governor(cores) {
    settings.weights = {};  // the sample_order has them now
    if (start.epoch < 0 || start.batch < 0 || start.batch > per_epoch)
        throw UserError({.where = {},
                         .found = fmt::format("the saved position is batch {} of epoch {}",
                                              start.batch, start.epoch),
                         .expected = fmt::format("0 to {} batches in an epoch", per_epoch),
                         .fix = "resume with the data and batch_size of the saved run"});
    front = opened = start.epoch * per_epoch + start.batch;
    bool is_auto = settings.workers < 0;
    int most = is_auto ? Governor::most(cores) : std::max(settings.workers, 1);
    auto depth_max = static_cast<std::size_t>(most) *
                     static_cast<std::size_t>(std::max(settings.prefetch_factor, 1));
    room.batches_wanted = settings.workers == 0 ? 0 : static_cast<std::int64_t>(depth_max);
    if (settings.prefetch_bytes > 0) {
        std::uint64_t fit = settings.prefetch_bytes / std::max<std::size_t>(ring->slab_bytes(), 1);
        if (fit < 2)
            throw UserError({.where = {},
                             .found = fmt::format("two batches of {} take {}", settings.batch_size,
                                                  bytes_text(2 * ring->slab_bytes())),
                             .expected = fmt::format("at most {} (prefetch_bytes)",
                                                     bytes_text(settings.prefetch_bytes)),
                             .fix = "a smaller batch_size or a larger limit"});
        depth_max = std::min<std::uint64_t>(depth_max, fit - 1);
    }
    slots.resize(depth_max);
    room.batches = std::min(room.batches_wanted, static_cast<std::int64_t>(depth_max));
    room.bytes = (static_cast<std::size_t>(room.batches) + 2) * ring->slab_bytes();
    if (settings.prefetch_bytes > 0) room.bytes = std::min(room.bytes, settings.prefetch_bytes);
    if (settings.workers == 0) {
        own_memory = filler.make_memory();
        return;
    }
    try {
        std::lock_guard lock(ring->mutex);
        start_workers(is_auto ? governor.workers() : settings.workers);
    } catch (...) {
        stop();  // the workers already started
        throw;
    }
}

Loader::Impl::~Impl() {
    stop();
    reporter.write(stats_now());
}

void Loader::Impl::stop() {
    for (const std::unique_ptr<Worker>& worker : workers) worker->thread.request_stop();
    {
        std::lock_guard lock(ring->mutex);  // no worker is now between its check and its wait
    }
    ring->returned.notify_all();
    parked.notify_all();
    for (const std::unique_ptr<Worker>& worker : workers) {
        if (worker->thread.joinable()) worker->thread.join();
    }
}

bool Loader::Impl::is_ready() {
    if (position.batch == per_epoch) return true;
    if (settings.workers == 0) return false;
    std::lock_guard lock(ring->mutex);
    return front_is_ready();
}

void Loader::Impl::wait_for_front(std::unique_lock<std::mutex>& lock) {
    if (front_is_ready()) return;
    std::int64_t start_ns = now_ns();
    std::int64_t idle_ns = start_ns;
    while (!front_is_ready()) {
        if (help(lock)) {
            idle_ns = now_ns();
            continue;
        }
        if (now_ns() - idle_ns < kGiveWayNs && give_way(lock)) continue;
        if (opened == front && ring->is_empty() && ring->count() >= slabs_max) {
            // The trainer holds every slab, so waiting would never end: let the ring grow.
            if (settings.prefetch_bytes > 0 &&
                (ring->count() + 1) * ring->slab_bytes() > settings.prefetch_bytes)
                throw UserError({.where = {},
                                 .found = fmt::format(
                                     "all {} batches that prefetch_bytes allows are in use at once",
                                     ring->count()),
                                 .expected = "fewer, so that the next one can be filled",
                                 .fix = "a larger prefetch_bytes"});
            slabs_max = ring->count() + 1;
            ring->returned.notify_all();
        }
        if (ready.wait_for(lock, std::min(settings.sample_max, std::chrono::milliseconds(1000))) ==
            std::cv_status::no_timeout)
            continue;
        std::int64_t limit_ns = std::chrono::nanoseconds(settings.sample_max).count();
        for (const std::unique_ptr<Worker>& worker : workers) {
            std::int64_t sample = worker->memory->sample.load(std::memory_order_relaxed);
            if (sample >= 0 && now_ns() - worker->memory->since_ns > limit_ns)
                throw no_answer(source->name_of(sample));
        }
    }
    stats.consumer_wait_ns += now_ns() - start_ns;
}

MachineError Loader::Impl::no_answer(const std::string& name) const {
    auto seconds = static_cast<double>(settings.sample_max.count()) / 1000;
    return MachineError({.where = {name},
                         .found = fmt::format("no answer from storage for {:g} s", seconds),
                         .expected = "",
                         .fix = "check the disk or the network file system"});
}

Slab* Loader::Impl::fill_in_this_thread() {
    Slab* slab = nullptr;
    {
        std::lock_guard lock(ring->mutex);
        std::size_t most = settings.prefetch_bytes > 0
                               ? settings.prefetch_bytes / ring->slab_bytes()
                               : ring->count() + 1;
        slab = ring->take(most);
    }
    if (!slab)
        throw UserError({.where = {},
                         .found = "all batches that prefetch_bytes allows are in use at once",
                         .expected = "fewer, so that the next one can be filled",
                         .fix = "a larger prefetch_bytes"});
    Run run{.epoch = position.epoch,
            .batch = position.batch,
            .slab = slab,
            .first = 0,
            .count = sample_order.batch_size(position.batch)};
    SampleCost cost;
    std::int64_t start_ns = now_ns();
    try {
        filler.fill(run, *own_memory, {}, cost);
    } catch (...) {
        std::lock_guard lock(ring->mutex);
        ring->put_back(slab);
        throw;
    }
    std::int64_t took_ns = now_ns() - start_ns;
    std::lock_guard lock(ring->mutex);
    add(cost, took_ns);
    stats.consumer_wait_ns += took_ns;
    return slab;
}

std::optional<Batch> Loader::Impl::next() {
    SATURATE_CHECK(!failed, "a loader that failed is not asked again");
    if (started_ns == 0) {
        std::lock_guard lock(ring->mutex);
        started_ns = decided_ns = now_ns();
    }
    if (position.batch == per_epoch) {
        position = {.epoch = position.epoch + 1, .batch = 0};
        reporter.write_now_and_then(stats_now());
        return std::nullopt;
    }
    Batch batch{.epoch = position.epoch,
                .index = position.batch,
                .size = sample_order.batch_size(position.batch)};
    Slab* slab = nullptr;
    try {
        if (workers.empty()) {
            slab = fill_in_this_thread();
        } else {
            std::unique_lock lock(ring->mutex);
            wait_for_front(lock);
            if (slot(front).error) std::rethrow_exception(slot(front).error);
            slab = slot(front).slab;
            ++front;
        }
    } catch (...) {
        failed = true;
        throw;
    }
    ring->returned.notify_all();  // there is room for another batch
    batch.slab = ring->lend(slab);
    batch.fields = slab->fields;
    batch.samples = std::span(slab->samples).first(static_cast<std::size_t>(batch.size));
    ++position.batch;
    {
        std::lock_guard lock(ring->mutex);
        ++stats.batches;
        stats.samples += batch.size;
    }
    if (settings.workers < 0) follow_the_wait();
    return batch;
}

void Loader::Impl::follow_the_wait() {
    std::int64_t now = now_ns();
    if (now - decided_ns < kDecideEveryNs) return;
    std::lock_guard lock(ring->mutex);
    WorkerInterval total{.wall_ns = now - started_ns,
                         .consumer_wait_ns = stats.consumer_wait_ns,
                         .busy_ns = stats.busy_ns,
                         .cpu_ns = 0};
    for (const std::unique_ptr<Worker>& worker : workers) total.cpu_ns += worker->cpu_ns;
    int wish =
        governor.decide({.wall_ns = now - decided_ns,
                         .consumer_wait_ns = total.consumer_wait_ns - before.consumer_wait_ns,
                         .busy_ns = total.busy_ns - before.busy_ns,
                         .cpu_ns = total.cpu_ns - before.cpu_ns});
    before = total;
    decided_ns = now;
    if (wish == active) return;
    start_workers(wish);
    parked.notify_all();
    ring->returned.notify_all();  // lets a surplus worker go from waiting to parked
}

LoaderStats Loader::Impl::stats_now() const {
    std::lock_guard lock(ring->mutex);
    LoaderStats now = stats;
    now.bad_samples = faults.count();
    now.retries = filler.retries();
    now.elapsed_ns = started_ns > 0 ? now_ns() - started_ns : 0;
    now.workers = active;
    now.cores = cores;
    now.memory_bytes = ring->count() * ring->slab_bytes();
    return now;
}

Loader::Loader(std::shared_ptr<const SampleSource> source, LoaderSettings settings,
               Recorder& recorder, LoaderState start)
    : impl_(std::make_unique<Impl>(std::move(source), std::move(settings), recorder, start)) {}
Loader::~Loader() = default;
std::optional<Batch> Loader::next() { return impl_->next(); }
bool Loader::is_ready() const { return impl_->is_ready(); }
LoaderRoom Loader::room() const { return impl_->room; }
std::int64_t Loader::batches_per_epoch() const { return impl_->per_epoch; }
LoaderState Loader::state() const { return impl_->position; }
LoaderStats Loader::stats() const { return impl_->stats_now(); }
std::string Loader::why_slow() const { return saturate::why_slow(impl_->stats_now()); }

}  // namespace saturate
