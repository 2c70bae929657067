// SPDX-License-Identifier: Apache-2.0
#include "pipeline/filler.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>

#include "base/clock.h"
#include "base/error.h"

namespace saturate {

namespace {

// Rethrows the current error with the sample's name, for the consumer.
[[noreturn]] void rethrow_named(const std::string& name) {
    auto named = [&](std::vector<Problem> problems) {
        for (Problem& problem : problems) {
            if (problem.where.file.empty()) problem.where.file = name;
        }
        return problems;
    };
    try {
        throw;
    } catch (const UserError& error) {
        throw UserError(named(error.problems()));
    } catch (const MachineError& error) {
        throw MachineError(named(error.problems()).front());
    } catch (const Bug&) {
        throw;
    } catch (const std::bad_alloc&) {
        throw MachineError({.where = {name},
                            .found = "no memory left to read this sample",
                            .expected = "",
                            .fix = "fewer workers, or a smaller batch_size"});
    } catch (const std::exception& error) {
        throw MachineError({.where = {name}, .found = error.what(), .expected = "", .fix = ""});
    }
}

// Returns false if stopped during the pause.
bool pause(std::chrono::milliseconds time, const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, stop, time, [] { return false; });
    return !stop.stop_requested();
}

}  // namespace

Filler::Filler(const SampleSource& source, const SampleOrder& sample_order,
               const LoaderSettings& settings, Faults& faults)
    : source_(source), sample_order_(sample_order), settings_(settings), faults_(faults) {
    for (const FieldSpec& field : source.fields()) sample_bytes_.push_back(field.bytes());
}

std::unique_ptr<WorkerMemory> Filler::make_memory() const {
    auto memory = std::make_unique<WorkerMemory>();
    memory->scratch = source_.make_scratch();
    memory->places.resize(sample_bytes_.size());
    return memory;
}

void Filler::fill(const Run& run, WorkerMemory& memory, const std::stop_token& stop,
                  SampleCost& cost) const {
    RunOrder order = sample_order_.order(run.epoch);
    for (std::int64_t row = run.first; row < run.first + run.count; ++row) {
        if (stop.stop_requested()) return;
        fill_row(run, row, order, memory, stop, cost);
    }
}

void Filler::fill_row(const Run& run, std::int64_t row, const RunOrder& order, WorkerMemory& memory,
                      const std::stop_token& stop, SampleCost& cost) const {
    for (std::size_t i = 0; i < sample_bytes_.size(); ++i)
        memory.places[i] =
            run.slab->fields[i].data + sample_bytes_[i] * static_cast<std::size_t>(row);
    std::int64_t place = run.batch * settings_.batch_size + row;
    std::int64_t index = sample_order_.at(order, run.epoch, place);
    for (std::int64_t attempt = 1;; ++attempt) {
        if (!faults_.is_bad(index)) {
            memory.sample.store(index, std::memory_order_relaxed);
            if (write({.seed = settings_.seed, .epoch = run.epoch, .index = index}, memory, stop,
                      cost)) {
                run.slab->samples[static_cast<std::size_t>(row)] = index;
                return;
            }
        }
        if (stop.stop_requested()) return;
        index = sample_order_.substitute(run.epoch, place, attempt);
    }
}

bool Filler::write(const SampleDraw& draw, WorkerMemory& memory, const std::stop_token& stop,
                   SampleCost& cost) const {
    std::chrono::milliseconds wait = settings_.retry_pause;
    for (int attempt = 0;; ++attempt, wait *= 2) {
        try {
            source_.write(draw, *memory.scratch, memory.places, cost);
            return true;
        } catch (const BusySample& busy) {
            if (attempt == settings_.retries) {
                faults_.add(draw.index, busy.sample(), busy.what());
                return false;
            }
        } catch (const BadSample& bad) {
            faults_.add(draw.index, bad.sample(), bad.what());
            return false;
        } catch (...) {
            rethrow_named(source_.name_of(draw.index));
        }
        ++retries_;
        if (!pause(wait, stop)) return false;
    }
}

}  // namespace saturate
