// SPDX-License-Identifier: Apache-2.0
#include "pipeline/loader.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "pipeline/filler.h"
#include "pipeline/governor.h"
#include "pipeline/loader_report.h"

namespace saturate {

namespace {

// A claim takes about this long: long enough to make the lock cheap, short against a batch.
constexpr double kClaimNs = 40'000;
constexpr double kCheapNs = 10'000;          // of a sample
constexpr std::int64_t kGiveWayNs = 50'000;  // so long others are let through before a sleep
constexpr std::int64_t kDecideEveryNs = 200'000'000;

int affinity_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

std::int64_t thread_cpu_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// A batch on its way: its samples are claimed by workers, in runs, and counted when written.
struct Slot {
    Slab* slab = nullptr;
    std::int64_t size = 0, claimed = 0, done = 0;
    std::exception_ptr error;
};

struct Worker {
    std::unique_ptr<WorkerMemory> memory;
    std::int64_t cpu_ns = 0;
    std::jthread thread;
};

}  // namespace

struct Loader::Impl {
    Impl(std::shared_ptr<const SampleSource> the_source, LoaderSettings the_settings,
         Recorder& recorder, LoaderState start);
    ~Impl();

    [[nodiscard]] std::optional<Batch> next();
    [[nodiscard]] LoaderStats stats_now() const;

    [[nodiscard]] Slot& slot(std::int64_t sequence) {
        return slots[static_cast<std::size_t>(sequence) % slots.size()];
    }
    void start_workers(int count);  // as many as there must be; locked
    void work(Worker& worker, int number, const std::stop_token& stop);
    [[nodiscard]] std::optional<Run> claim(std::unique_lock<std::mutex>& lock, int number,
                                           const std::stop_token& stop);
    [[nodiscard]] std::optional<Run> claim_now();
    [[nodiscard]] bool help(std::unique_lock<std::mutex>& lock);
    [[nodiscard]] bool give_way(std::unique_lock<std::mutex>& lock) const;
    [[nodiscard]] bool open_next();
    void complete(const Run& run, const SampleCost& cost, std::int64_t busy_ns,
                  std::exception_ptr error);
    void wait_for_front(std::unique_lock<std::mutex>& lock);
    [[nodiscard]] MachineError no_answer(const std::string& name) const;
    [[nodiscard]] Slab* fill_in_this_thread();
    void follow_the_wait();
    void add(const SampleCost& cost, std::int64_t busy_ns);
    void stop();

    std::shared_ptr<const SampleSource> source;
    LoaderSettings settings;
    int cores;
    SampleOrder sample_order;
    std::int64_t per_epoch;
    std::shared_ptr<SlabRing> ring;  // its mutex guards all below that is not the consumer's own
    Faults faults;
    Filler filler;
    LoaderReporter reporter;

    // Batches are numbered over all epochs.
    std::vector<Slot> slots;
    std::int64_t front = 0;   // the next to give out
    std::int64_t opened = 0;  // the next to begin; all before it are claimed or being claimed
    std::size_t slabs_max = 0;
    double sample_ns = 0;  // what one sample takes, a moving mean; 0: not known yet
    int active = 0;        // workers that may claim; the others are parked
    LoaderStats stats;
    std::condition_variable ready, parked;
    std::vector<std::unique_ptr<Worker>> workers;

    // The consumer's own.
    LoaderState position;
    bool failed = false;
    std::unique_ptr<WorkerMemory> own_memory;  // for samples that it fills itself
    Governor governor;
    std::int64_t started_ns = 0, decided_ns = 0;
    WorkerInterval before;  // totals at the last decision
};

Loader::Impl::Impl(std::shared_ptr<const SampleSource> the_source, LoaderSettings the_settings,
                   Recorder& recorder, LoaderState start)
    : source(std::move(the_source)),
      settings(std::move(the_settings)),
      cores(settings.cores > 0 ? settings.cores : affinity_cores()),
      sample_order({.size = source->size(),
                    .batch_size = settings.batch_size,
                    .shuffle = settings.shuffle,
                    .drop_last = settings.drop_last,
                    .weights = settings.weights,
                    .seed = settings.seed,
                    .shard = settings.shard}),
      per_epoch(sample_order.batches_per_epoch()),
      ring(std::make_shared<SlabRing>(source->fields(), settings.batch_size,
                                      settings.memory ? settings.memory : ordinary_memory())),
      faults(source->size(), settings.bad_samples_max, recorder),
      filler(*source, sample_order, settings, faults),
      reporter(recorder),
      position(start),
      governor(cores) {
    settings.weights = {};  // the sample_order has them
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
    if (settings.workers == 0) {
        own_memory = filler.make_memory();
        return;
    }
    try {
        std::lock_guard lock(ring->mutex);
        start_workers(is_auto ? governor.workers() : settings.workers);
    } catch (...) {
        stop();  // those that started already
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
        std::lock_guard lock(ring->mutex);  // no worker between its check and its wait
    }
    ring->returned.notify_all();
    parked.notify_all();
    for (const std::unique_ptr<Worker>& worker : workers) {
        if (worker->thread.joinable()) worker->thread.join();
    }
}

void Loader::Impl::start_workers(int count) {
    active = count;
    auto depth = static_cast<std::size_t>(count) *
                 static_cast<std::size_t>(std::max(settings.prefetch_factor, 1));
    // One more for the trainer's batch, and one for the batch whose copy is still under way.
    slabs_max = std::max(slabs_max, std::min(depth, slots.size()) + 2);
    if (settings.prefetch_bytes > 0)
        slabs_max = std::min<std::size_t>(slabs_max, settings.prefetch_bytes / ring->slab_bytes());
    while (workers.size() < static_cast<std::size_t>(count)) {
        workers.push_back(std::make_unique<Worker>());
        Worker& worker = *workers.back();
        worker.memory = filler.make_memory();
        int number = static_cast<int>(workers.size()) - 1;
        worker.thread = std::jthread([this, &worker, number](const std::stop_token& token) {
            pthread_setname_np(pthread_self(), fmt::format("loader-{}", number).c_str());
            work(worker, number, token);
        });
    }
}

void Loader::Impl::work(Worker& worker, int number, const std::stop_token& stop) {
    std::unique_lock lock(ring->mutex);
    std::int64_t cpu_read_ns = 0;
    while (std::optional<Run> run = claim(lock, number, stop)) {
        lock.unlock();
        std::int64_t start_ns = now_ns();
        worker.memory->since_ns.store(start_ns, std::memory_order_relaxed);
        SampleCost cost;
        std::exception_ptr error;
        try {
            filler.fill(*run, *worker.memory, stop, cost);
        } catch (...) {
            error = std::current_exception();
        }
        worker.memory->sample.store(-1, std::memory_order_relaxed);
        std::int64_t end_ns = now_ns();
        bool read_cpu = end_ns - cpu_read_ns > 10'000'000;  // not at every run: it is a system call
        std::int64_t cpu_ns = read_cpu ? thread_cpu_ns() : 0;
        lock.lock();
        if (read_cpu) {
            worker.cpu_ns = cpu_ns;
            cpu_read_ns = end_ns;
        }
        complete(*run, cost, end_ns - start_ns, error);
    }
}

std::optional<Run> Loader::Impl::claim(std::unique_lock<std::mutex>& lock, int number,
                                       const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        if (number >= active) {
            parked.wait(lock);
            continue;
        }
        std::int64_t start_ns = 0;
        // From the last look to the wait the lock is held: no wake-up and no stop is missed.
        while (true) {
            if (std::optional<Run> run = claim_now()) {
                if (start_ns > 0) stats.worker_wait_ns += now_ns() - start_ns;
                return run;
            }
            if (stop.stop_requested()) return std::nullopt;
            std::int64_t now = now_ns();
            if (start_ns == 0) start_ns = now;
            if (now - start_ns > kGiveWayNs || !give_way(lock)) break;
        }
        ring->returned.wait(lock);
        stats.worker_wait_ns += now_ns() - start_ns;
    }
    return std::nullopt;
}

// Some samples that nobody has claimed yet, or nothing. Locked.
std::optional<Run> Loader::Impl::claim_now() {
    Slot* current = opened > front ? &slot(opened - 1) : nullptr;
    if ((!current || current->claimed == current->size) && open_next()) current = &slot(opened - 1);
    if (!current || current->claimed == current->size) return std::nullopt;
    // Cheap samples are taken several at once; never so many that the others have none.
    auto fair = static_cast<double>(std::max<std::int64_t>(current->size / (2 * active), 1));
    double wish = sample_ns > 0 ? std::clamp(kClaimNs / sample_ns, 1.0, fair) : 1.0;
    Run run{.epoch = (opened - 1) / per_epoch,
            .batch = (opened - 1) % per_epoch,
            .slab = current->slab,
            .first = current->claimed,
            .count = std::min(static_cast<std::int64_t>(wish), current->size - current->claimed)};
    current->claimed += run.count;
    return run;
}

// With cheap samples somebody else's turn is shorter than sleeping and being woken. False when it
// is not worth it. Locked before and after.
bool Loader::Impl::give_way(std::unique_lock<std::mutex>& lock) const {
    if (sample_ns <= 0 || sample_ns > kCheapNs) return false;
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    return true;
}

// The consumer fills some samples itself rather than going to sleep, when they are so cheap that
// sleeping and waking up would take longer. False: there is nothing that it could do.
bool Loader::Impl::help(std::unique_lock<std::mutex>& lock) {
    if (sample_ns <= 0 || sample_ns > kCheapNs) return false;
    std::optional<Run> run = claim_now();
    if (!run) return false;
    lock.unlock();
    std::int64_t start_ns = now_ns();
    SampleCost cost;
    std::exception_ptr error;
    try {
        if (!own_memory) own_memory = filler.make_memory();
        filler.fill(*run, *own_memory, {}, cost);
    } catch (...) {
        error = std::current_exception();
    }
    std::int64_t took_ns = now_ns() - start_ns;
    lock.lock();
    complete(*run, cost, took_ns, error);
    return true;
}

// Begins another batch if there is room for it. Locked.
bool Loader::Impl::open_next() {
    auto depth =
        std::min<std::int64_t>(std::int64_t{active} * std::max(settings.prefetch_factor, 1),
                               static_cast<std::int64_t>(slots.size()));
    if (opened - front >= depth) return false;
    Slot& fresh = slot(opened);
    Slab* slab = nullptr;
    std::exception_ptr error;
    try {
        slab = ring->take(slabs_max);
        if (!slab) return false;
    } catch (const MachineError&) {
        error = std::current_exception();
    }
    fresh = {.slab = slab, .size = sample_order.batch_size(opened % per_epoch), .error = error};
    if (error) fresh.claimed = fresh.size;
    ++opened;
    if (error) ready.notify_one();
    ring->returned.notify_all();  // there is work for the others too
    return true;
}

// Locked.
void Loader::Impl::complete(const Run& run, const SampleCost& cost, std::int64_t busy_ns,
                            std::exception_ptr error) {
    add(cost, busy_ns);
    double each = static_cast<double>(busy_ns) / static_cast<double>(run.count);
    sample_ns = sample_ns > 0 ? sample_ns + (each - sample_ns) / 16 : each;
    std::int64_t sequence = run.epoch * per_epoch + run.batch;
    Slot& its = slot(sequence);
    its.done += run.count;
    if (error && !its.error) its.error = error;
    if (sequence == front && (its.error || its.done == its.size)) ready.notify_one();
}

void Loader::Impl::add(const SampleCost& cost, std::int64_t busy_ns) {
    stats.read_ns += cost.read_ns;
    stats.decode_ns += cost.decode_ns;
    stats.transform_ns += cost.transform_ns;
    stats.read_bytes += cost.read_bytes;
    stats.cache_hits += cost.cache_hits;
    stats.busy_ns += busy_ns;
}

void Loader::Impl::wait_for_front(std::unique_lock<std::mutex>& lock) {
    auto is_ready = [&] {
        return opened > front && (slot(front).error || slot(front).done == slot(front).size);
    };
    if (is_ready()) return;
    std::int64_t start_ns = now_ns();
    std::int64_t idle_ns = start_ns;
    while (!is_ready()) {
        if (help(lock)) {
            idle_ns = now_ns();
            continue;
        }
        if (now_ns() - idle_ns < kGiveWayNs && give_way(lock)) continue;
        if (opened == front && ring->is_empty() && ring->count() >= slabs_max) {
            // The trainer holds every slab. Waiting would be for ever: the ring grows.
            if (settings.prefetch_bytes > 0 &&
                (ring->count() + 1) * ring->slab_bytes() > settings.prefetch_bytes)
                throw UserError({.where = {},
                                 .found = fmt::format("all {} batches that prefetch_bytes allows "
                                                      "are held at once",
                                                      ring->count()),
                                 .expected = "fewer, so that one can be filled",
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
                         .found = "all batches that prefetch_bytes allows are held at once",
                         .expected = "fewer, so that one can be filled",
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
    ring->returned.notify_all();  // room for another batch
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
    ring->returned.notify_all();  // one that is too many goes from waiting to parked
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
std::int64_t Loader::batches_per_epoch() const { return impl_->per_epoch; }
LoaderState Loader::state() const { return impl_->position; }
LoaderStats Loader::stats() const { return impl_->stats_now(); }
std::string Loader::why_slow() const { return saturate::why_slow(impl_->stats_now()); }

}  // namespace saturate
