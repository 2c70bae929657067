// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <system_error>

#include "base/clock.h"
#include "pipeline/loader_impl.h"

namespace saturate {

namespace {

// Target time of a claim: long enough to make locking cheap, short compared with a batch.
constexpr double kClaimNs = 40'000;
constexpr double kCheapNs = 10'000;  // upper limit for a cheap sample

std::int64_t thread_cpu_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

void Loader::Impl::start_workers(int count) {
    while (workers.size() < static_cast<std::size_t>(count)) {
        if (start_worker()) continue;
        // A wish of the governor may be left undone; a number that the user set may not.
        if (settings.workers < 0 && !workers.empty()) {
            count = static_cast<int>(workers.size());
            break;
        }
        throw MachineError(
            {.found = fmt::format("worker {} of {} cannot be started: the limits of this process "
                                  "are reached",
                                  workers.size() + 1, count),
             .expected = "room for a thread and its stack (ulimit -u, ulimit -v, pids.max)",
             .fix = "num_workers: auto"});
    }
    active = count;
    auto depth = static_cast<std::size_t>(count) *
                 static_cast<std::size_t>(std::max(settings.prefetch_factor, 1));
    slabs_max = std::max(slabs_max,
                         std::min(depth, slots.size()) + static_cast<std::size_t>(settings.held));
    if (settings.prefetch_bytes > 0)
        slabs_max = std::min<std::size_t>(slabs_max, settings.prefetch_bytes / ring->slab_bytes());
}

// Returns false if the machine has no room for another thread.
bool Loader::Impl::start_worker() {
    try {
        auto fresh = std::make_unique<Worker>();
        Worker& worker = *fresh;
        worker.memory = filler.make_memory();
        int number = static_cast<int>(workers.size());
        workers.push_back(std::move(fresh));
        worker.thread = std::jthread([this, &worker, number](const std::stop_token& token) {
            pthread_setname_np(pthread_self(), fmt::format("loader-{}", number).c_str());
            work(worker, number, token);
        });
        return true;
    } catch (const std::system_error&) {
        workers.pop_back();
        return false;
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
        bool read_cpu = end_ns - cpu_read_ns > 10'000'000;  // rarely: it is a system call
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
        // The lock is held from the last check to the wait, so no wake-up and no stop is missed.
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

// Claims some samples that nobody has claimed yet, or nothing. Call locked.
std::optional<Run> Loader::Impl::claim_now() {
    Slot* current = opened > front ? &slot(opened - 1) : nullptr;
    if ((!current || current->claimed == current->size) && open_next()) current = &slot(opened - 1);
    if (!current || current->claimed == current->size) return std::nullopt;
    // Takes several cheap samples at once, but leaves enough for the other workers.
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

// With cheap samples, another thread's turn is shorter than sleeping and waking up. Returns false
// if it is not worth it. Locked on entry and exit.
bool Loader::Impl::give_way(std::unique_lock<std::mutex>& lock) const {
    if (sample_ns <= 0 || sample_ns > kCheapNs) return false;
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    return true;
}

// Lets the consumer fill some samples itself if they are so cheap that sleeping and waking up would
// take longer. Returns false if there is nothing to fill.
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

// Begins another batch if there is room for it. Call locked.
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
    ring->returned.notify_all();  // the other workers have work too
    return true;
}

// Call locked.
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

}  // namespace saturate
