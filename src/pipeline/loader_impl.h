// SPDX-License-Identifier: Apache-2.0
// The inside of the loader. loader.cpp is the consumer's side, loader_workers.cpp the side of the
// threads that fill batches. The ring's mutex protects what they share.
#pragma once

#include <condition_variable>
#include <exception>
#include <thread>

#include "base/error.h"
#include "pipeline/filler.h"
#include "pipeline/governor.h"
#include "pipeline/loader.h"
#include "pipeline/loader_report.h"

namespace saturate {

struct Loader::Impl {
    // How long a thread lets others go first before it sleeps.
    static constexpr std::int64_t kGiveWayNs = 50'000;

    // A batch in progress: workers claim runs of its samples; written samples
    // are counted in `done`.
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

    Impl(std::shared_ptr<const SampleSource> the_source, LoaderSettings the_settings,
         Recorder& recorder, LoaderState start);
    ~Impl();

    [[nodiscard]] std::optional<Batch> next();
    [[nodiscard]] bool is_ready();
    [[nodiscard]] LoaderStats stats_now() const;

    [[nodiscard]] Slot& slot(std::int64_t sequence) {
        return slots[static_cast<std::size_t>(sequence) % slots.size()];
    }
    [[nodiscard]] bool front_is_ready() {  // call locked
        return opened > front && (slot(front).error || slot(front).done == slot(front).size);
    }
    void start_workers(int count);  // up to `count`; call locked
    [[nodiscard]] bool start_worker();
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
    std::shared_ptr<SlabRing> ring;  // its mutex guards all below except the consumer's members
    Faults faults;
    Filler filler;
    LoaderReporter reporter;

    // Batch numbers count over all epochs.
    std::vector<Slot> slots;
    std::int64_t front = 0;   // next batch to return
    std::int64_t opened = 0;  // next batch to begin; all before it are claimed or being claimed
    std::size_t slabs_max = 0;
    LoaderRoom room;       // set once
    double sample_ns = 0;  // moving average of a sample's time; 0: not known yet
    int active = 0;        // workers that may claim; the others are parked
    LoaderStats stats;
    std::condition_variable ready, parked;
    std::vector<std::unique_ptr<Worker>> workers;

    // Used only by the consumer.
    LoaderState position;
    bool failed = false;
    std::unique_ptr<WorkerMemory> own_memory;  // for samples that the consumer fills itself
    Governor governor;
    std::int64_t started_ns = 0, decided_ns = 0;
    WorkerInterval before;  // totals at the last decision
};

}  // namespace saturate
