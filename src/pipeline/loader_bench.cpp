// SPDX-License-Identifier: Apache-2.0
#include "pipeline/loader_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "pipeline/faults.h"
#include "pipeline/filler.h"
#include "telemetry/statistics.h"

namespace saturate {

namespace {

Spread spread_of(std::vector<double> values) {
    auto [low, high] = std::ranges::minmax(values);
    return {.median = median(values),
            .low = low,
            .high = high,
            .n = static_cast<std::int64_t>(values.size())};
}

double per_second(std::int64_t count, std::int64_t ns) {
    return static_cast<double>(count) * 1e9 / static_cast<double>(std::max<std::int64_t>(ns, 1));
}

struct MeasuredPoint {
    double rate = 0, first_seconds = 0;
    LoaderStats stats;
};

// Measures from the first batch on, over at least three batches.
MeasuredPoint measure_point(const std::shared_ptr<const SampleSource>& source,
                            LoaderSettings settings, int workers, std::int64_t time_ns) {
    NullRecorder recorder;
    settings.workers = workers;
    std::int64_t begun_ns = now_ns();
    Loader loader(source, std::move(settings), recorder);
    MeasuredPoint out;
    std::int64_t first_ns = 0, samples = 0, batches = 0;
    while (true) {
        std::optional<Batch> batch = loader.next();
        if (!batch) continue;
        std::int64_t now = now_ns();
        if (first_ns == 0) {
            first_ns = now;
            out.first_seconds = static_cast<double>(now - begun_ns) / 1e9;
            continue;
        }
        samples += batch->size;
        if (++batches < 3 || now - first_ns < time_ns) continue;
        out.rate = per_second(samples, now - first_ns);
        out.stats = loader.stats();
        return out;
    }
}

// Each core writes whole batches into its own memory.
double measure_limit(const SampleSource& source, const LoaderSettings& settings, int cores,
                     std::int64_t time_ns) {
    NullRecorder recorder;
    SampleOrder order({.size = source.size(),
                       .batch_size = settings.batch_size,
                       .drop_last = settings.drop_last,
                       .seed = settings.seed});
    Faults faults(source.size(), settings.bad_samples_max, recorder);
    Filler filler(source, order, settings, faults);
    SlabRing ring(source.fields(), settings.batch_size, ordinary_memory());
    std::atomic<std::int64_t> next = 0, samples = 0;
    std::mutex mutex;
    std::exception_ptr error;
    std::int64_t start_ns = now_ns();
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < cores; ++i) {
            threads.emplace_back([&] {
                try {
                    std::unique_ptr<WorkerMemory> memory = filler.make_memory();
                    Slab* slab = nullptr;
                    {
                        std::lock_guard lock(mutex);
                        slab = ring.take(static_cast<std::size_t>(cores));
                    }
                    SampleCost cost;
                    std::int64_t chunk = 1, written = 0;
                    for (bool ended = false; !ended;) {
                        std::int64_t batch = next++ % order.batches_per_epoch();
                        std::int64_t size = order.batch_size(batch);
                        for (std::int64_t row = 0; row < size && !ended;) {
                            std::int64_t before_ns = now_ns();
                            std::int64_t count = std::min(chunk, size - row);
                            filler.fill({.epoch = 0,
                                         .batch = batch,
                                         .slab = slab,
                                         .first = row,
                                         .count = count},
                                        *memory, {}, cost);
                            written += count;
                            std::int64_t after_ns = now_ns();
                            ended = after_ns - start_ns >= time_ns;
                            row += count;
                            // Writes many cheap samples per reading of the clock; otherwise the
                            // clock would be measured.
                            if (after_ns - before_ns < 20'000)
                                chunk = std::min<std::int64_t>(2 * chunk, 4096);
                        }
                    }
                    samples += written;
                } catch (...) {
                    std::lock_guard lock(mutex);
                    error = std::current_exception();
                }
            });
        }
    }
    if (error) std::rethrow_exception(error);
    return per_second(samples, now_ns() - start_ns);
}

}  // namespace

const LoaderBenchPoint& LoaderBench::best() const {
    return *std::max_element(points.begin(), points.end(), [](const auto& a, const auto& b) {
        auto rank = [](const LoaderBenchPoint& point) {
            return point.workers < 0 ? -1 : point.samples_per_second.median;
        };
        return rank(a) < rank(b);
    });
}

std::vector<int> worker_counts(int cores) {
    std::vector<int> counts = {0};
    for (int count = 1; count < cores; count *= 2) counts.push_back(count);
    counts.push_back(cores);
    counts.push_back(-1);
    return counts;
}

LoaderBench bench_loader(const std::shared_ptr<const SampleSource>& source,
                         const LoaderSettings& settings, const LoaderBenchPlan& plan) {
    LoaderSettings with_cores = settings;
    with_cores.cores = plan.cores;
    std::vector<int> counts = worker_counts(plan.cores);
    auto steps = static_cast<double>(counts.size() + 1) * plan.rounds;
    auto time_ns = static_cast<std::int64_t>(plan.seconds / steps * 1e9);
    std::vector<std::vector<double>> rates(counts.size());
    std::vector<double> limits;
    LoaderBench out;
    out.points.resize(counts.size());
    double done = 0;
    auto tell = [&](const std::string& what) {
        if (plan.progress) plan.progress(what, done++ / steps);
    };
    for (int round = 0; round < plan.rounds; ++round) {
        for (std::size_t i = 0; i < counts.size(); ++i) {
            tell(counts[i] < 0 ? "auto" : fmt::format("{} workers", counts[i]));
            MeasuredPoint measured = measure_point(source, with_cores, counts[i], time_ns);
            rates[i].push_back(measured.rate);
            LoaderBenchPoint& point = out.points[i];
            point.workers = counts[i];
            point.first_batch_seconds = measured.first_seconds;
            point.stats = measured.stats;
            point.why_slow = why_slow(measured.stats);
        }
        tell("the limit of the source");
        limits.push_back(measure_limit(*source, with_cores, plan.cores, time_ns));
    }
    for (std::size_t i = 0; i < counts.size(); ++i)
        out.points[i].samples_per_second = spread_of(rates[i]);
    out.limit = spread_of(limits);
    return out;
}

}  // namespace saturate
