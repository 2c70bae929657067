// SPDX-License-Identifier: Apache-2.0
// Windows of a table through the loader, and what bounds it. Built and run by bench/loader; prints
// one line of JSON.
//
//   bench_loader_windows windows TABLE WORKERS SECONDS    the loader, batch 256, shuffled
//   bench_loader_windows memcpy TABLE THREADS SECONDS     shuffled windows copied by hand
//   bench_loader_windows growth SAMPLES SECONDS           samples per second of a source this large
//   bench_loader_windows epochs COUNT                     memory before and after so many epochs
//   bench_loader_windows scaling WORKERS SECONDS          samples that cost 200 us of a core each
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "loader_rate.h"
#include "pipeline/synthetic.h"
#include "pipeline/window.h"

using namespace saturate;

namespace {

constexpr std::int64_t kLength = 60, kBatch = 256;

std::int64_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    std::int64_t whole = 0, resident = 0;
    file >> whole >> resident;
    return resident * 4096;
}

Rate run_loader(std::shared_ptr<const SampleSource> source, LoaderSettings settings,
                double seconds) {
    NullRecorder recorder;
    std::int64_t begun_ns = now_ns();
    Loader loader(std::move(source), std::move(settings), recorder);
    return measure(loader, seconds, begun_ns);
}

std::shared_ptr<const SampleSource> windows_of(const char* path) {
    return cut_windows(
               read_table(path),
               {.length = kLength, .horizon = 0, .validation_percent = 0, .normalise = false})
        .training;
}

// The bound: threads that copy windows in shuffled order into a few batches' memory.
Rate copy_by_hand(const char* path, int threads, double seconds) {
    std::shared_ptr<const DataTable> table = read_table(path);
    std::int64_t count = table->rows - kLength + 1;
    std::vector<std::int64_t> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
    std::size_t bytes = static_cast<std::size_t>(kLength * table->width()) * sizeof(float);
    std::vector<std::vector<std::byte>> slabs(6, std::vector<std::byte>(kBatch * bytes));
    std::atomic<std::int64_t> next = 0;
    std::int64_t start_cpu_ns = cpu_ns();
    std::int64_t start_ns = now_ns(), end_ns = start_ns + static_cast<std::int64_t>(seconds * 1e9);
    std::vector<std::jthread> pool;
    for (int i = 0; i < threads; ++i) {
        pool.emplace_back([&] {
            while (now_ns() < end_ns) {
                std::int64_t first = next.fetch_add(64);
                for (std::int64_t i = first; i < first + 64; ++i) {
                    std::byte* to = slabs[static_cast<std::size_t>(i / kBatch % 6)].data() +
                                    static_cast<std::size_t>(i % kBatch) * bytes;
                    std::memcpy(to, table->row(order[static_cast<std::size_t>(i % count)]), bytes);
                }
            }
        });
    }
    pool.clear();
    auto copied = static_cast<double>(next);
    return {.per_second = copied * 1e9 / static_cast<double>(now_ns() - start_ns),
            .cpu_us = static_cast<double>(cpu_ns() - start_cpu_ns) / 1000 / copied};
}

void print_epochs(int count) {
    NullRecorder recorder;
    Loader loader(std::make_shared<SyntheticSource>(SyntheticSettings{.size = 100'000}),
                  {.batch_size = kBatch, .workers = 2}, recorder);
    std::vector<std::int64_t> resident;
    for (int epoch = 0; epoch < count; ++epoch) {
        while (loader.next()) {
        }
        resident.push_back(resident_bytes());
    }
    fmt::print("{{\"after_first_bytes\":{},\"after_last_bytes\":{}}}\n", resident.front(),
               resident.back());
}

}  // namespace

int main(int argc, char** argv) try {
    std::string mode = argc > 1 ? argv[1] : "";
    if (mode == "windows" && argc == 5) {
        print(run_loader(windows_of(argv[2]), {.batch_size = kBatch, .workers = std::atoi(argv[3])},
                         std::atof(argv[4])));
    } else if (mode == "memcpy" && argc == 5) {
        print(copy_by_hand(argv[2], std::atoi(argv[3]), std::atof(argv[4])));
    } else if (mode == "growth" && argc == 4) {
        auto source =
            std::make_shared<SyntheticSource>(SyntheticSettings{.size = std::atoll(argv[2])});
        print(run_loader(source, {.batch_size = kBatch, .workers = 2}, std::atof(argv[3])));
    } else if (mode == "epochs" && argc == 3) {
        print_epochs(std::atoi(argv[2]));
    } else if (mode == "scaling" && argc == 4) {
        auto source = std::make_shared<SyntheticSource>(
            SyntheticSettings{.size = 100'000, .spin_ns = 200'000});
        print(run_loader(source, {.batch_size = 64, .workers = std::atoi(argv[2])},
                         std::atof(argv[3])));
    } else {
        fmt::print(stderr, "started by bench/loader, see the head of bench/loader_windows.cpp\n");
        return 2;
    }
    return 0;
} catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 3;
}
