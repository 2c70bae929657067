// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record_writer.h"

#include <fmt/format.h>
#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>
#include <variant>

#include "base/error.h"
#include "base/file.h"
#include "base/line_file.h"
#include "telemetry/record_json.h"

namespace saturate {

namespace {

struct Lists {
    std::vector<StepRecord> steps;
    std::vector<EventRecord> events;
    std::vector<std::variant<DeviceSample, HostSample>> samples;
};

std::filesystem::path fresh_folder(const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error || !std::filesystem::is_directory(folder)) {
        throw UserError({.where = {folder.string()},
                         .found = fmt::format("cannot create a folder here{}",
                                              error ? ": " + error.message() : ""),
                         .expected = "a folder for the run record"});
    }
    if (!std::filesystem::is_empty(folder, error) && !error) {
        throw UserError({.where = {folder.string()},
                         .found = "this folder is not empty",
                         .expected = "a new or empty folder for the run record",
                         .fix = "name another one, or remove it first"});
    }
    return folder;
}

}  // namespace

struct RecordWriter::Impl {
    Impl(const std::filesystem::path& where, const RunInfo& info,
         const RecordWriterSettings& chosen)
        : folder(fresh_folder(where)),
          settings(chosen),
          origin_ns(info.started_ns),
          steps(folder / "steps.jsonl"),
          samples(folder / "samples.jsonl"),
          events(folder / "events.jsonl") {
        write_file_whole(folder / "run.json", info_json(info).pretty() + "\n");
        filling.steps.reserve(settings.steps_max);
        writing.steps.reserve(settings.steps_max);
        thread = std::jthread([this] { work(); });
    }

    ~Impl() { stop(); }

    void stop() {
        {
            std::lock_guard lock(mutex);
            stopping = true;
        }
        wake.notify_all();
        if (thread.joinable()) thread.join();
    }

    void work() {
        ::pthread_setname_np(::pthread_self(), "record-writer");
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_BLOCK, &all, nullptr);  // the main thread handles signals
        std::unique_lock lock(mutex);
        while (true) {
            wake.wait_for(lock, std::chrono::milliseconds(settings.flush_milliseconds),
                          [&] { return stopping || flushes_asked > flushes_done || hurry; });
            hurry = false;
            bool last = stopping;
            std::uint64_t asked = flushes_asked;
            std::swap(filling, writing);
            lock.unlock();
            RecordDrops refused = write_out();
            lock.lock();
            drops.steps += refused.steps;
            drops.events += refused.events;
            drops.samples += refused.samples;
            failure = steps.failure();
            if (failure.empty()) failure = samples.failure();
            if (failure.empty()) failure = events.failure();
            flushes_done = asked;
            flushed.notify_all();
            if (last) return;
        }
    }

    // Returns the number of records dropped because the disk is full.
    RecordDrops write_out() {
        RecordDrops refused;
        auto add = [&](LineFile& file, std::uint64_t& count, auto append) {
            if (!file.has_room()) {
                ++count;
                return;
            }
            append(file.text());
            file.text() += '\n';
        };
        for (const StepRecord& record : writing.steps) {
            add(steps, refused.steps,
                [&](std::string& out) { append_step(out, record, origin_ns); });
        }
        for (const EventRecord& record : writing.events) {
            add(events, refused.events,
                [&](std::string& out) { append_event(out, record, origin_ns); });
        }
        for (const auto& sample : writing.samples) {
            add(samples, refused.samples, [&](std::string& out) {
                if (const auto* device = std::get_if<DeviceSample>(&sample)) {
                    append_device(out, *device, origin_ns);
                } else {
                    append_host(out, std::get<HostSample>(sample), origin_ns);
                }
            });
        }
        writing.steps.clear();
        writing.events.clear();
        writing.samples.clear();
        steps.write();
        samples.write();
        events.write();
        return refused;
    }

    template <typename T, typename Value>
    void add(std::vector<T>& list, Value&& value, std::size_t most,
             std::uint64_t& dropped) noexcept {
        bool full = false;
        {
            std::lock_guard lock(mutex);
            if (list.size() >= most || finished) {
                ++dropped;
                return;
            }
            try {
                list.push_back(std::forward<Value>(value));
            } catch (const std::bad_alloc&) {
                ++dropped;
                return;
            }
            full = list.size() == most / 2 + 1;
            if (full) hurry = true;
        }
        if (full) wake.notify_one();
    }

    std::filesystem::path folder;
    RecordWriterSettings settings;
    std::int64_t origin_ns;

    std::mutex mutex;  // guards the members up to `finished`; held for a copy or a swap
    std::condition_variable wake, flushed;
    Lists filling;
    RecordDrops drops;
    std::string failure;
    std::uint64_t flushes_asked = 0, flushes_done = 0;
    bool hurry = false, stopping = false, finished = false;

    Lists writing;  // used only by the thread, like the files
    LineFile steps, samples, events;
    std::jthread thread;
};

RecordWriter::RecordWriter(const std::filesystem::path& folder, const RunInfo& info,
                           const RecordWriterSettings& settings)
    : impl_(std::make_unique<Impl>(folder, info, settings)) {}

RecordWriter::~RecordWriter() = default;

void RecordWriter::step(const StepRecord& record) noexcept {
    impl_->add(impl_->filling.steps, record, impl_->settings.steps_max, impl_->drops.steps);
}

void RecordWriter::event(EventRecord record) noexcept {
    impl_->add(impl_->filling.events, std::move(record), impl_->settings.others_max,
               impl_->drops.events);
}

void RecordWriter::device(DeviceSample sample) noexcept {
    impl_->add(impl_->filling.samples, std::move(sample), impl_->settings.others_max,
               impl_->drops.samples);
}

void RecordWriter::host(HostSample sample) noexcept {
    impl_->add(impl_->filling.samples, std::move(sample), impl_->settings.others_max,
               impl_->drops.samples);
}

void RecordWriter::flush() {
    std::unique_lock lock(impl_->mutex);
    if (impl_->stopping) return;
    std::uint64_t mine = ++impl_->flushes_asked;
    impl_->wake.notify_one();
    impl_->flushed.wait(lock, [&] { return impl_->flushes_done >= mine; });
}

void RecordWriter::finish(RunSummary summary) {
    {
        std::lock_guard lock(impl_->mutex);
        impl_->finished = true;
    }
    impl_->stop();
    std::lock_guard lock(impl_->mutex);
    // Lines that could not be written until the end count as dropped too.
    summary.dropped_steps = impl_->drops.steps += impl_->steps.lines_waiting();
    summary.dropped_events = impl_->drops.events += impl_->events.lines_waiting();
    summary.dropped_samples = impl_->drops.samples += impl_->samples.lines_waiting();
    if (!impl_->failure.empty()) {
        throw MachineError(
            {.found = fmt::format("the run record is incomplete: {}", impl_->failure),
             .expected = "free space on the disk"});
    }
    write_file_whole(impl_->folder / "summary.json", summary_json(summary).pretty() + "\n");
}

RecordDrops RecordWriter::drops() const {
    std::lock_guard lock(impl_->mutex);
    return impl_->drops;
}

std::string RecordWriter::failure() const {
    std::lock_guard lock(impl_->mutex);
    return impl_->failure;
}

}  // namespace saturate
