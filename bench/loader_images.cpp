// SPDX-License-Identifier: Apache-2.0
// Images through the loader, and what bounds it: decoding and resampling in threads without any
// pipeline around it. Built and run by bench/loader; prints one line of JSON.
//
//   bench_loader_images photos|greys FOLDER loader WORKERS SECONDS
//   bench_loader_images photos|greys FOLDER tar WORKERS SECONDS      the same from tar shards
//   bench_loader_images photos|greys FOLDER bare THREADS SECONDS     no loader
//   bench_loader_images photos|greys FOLDER exact THREADS SECONDS    no loader, JPEGs decoded whole
//   bench_loader_images photos|greys FOLDER decode THREADS SECONDS   no loader, one pixel of result
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "loader_rate.h"
#include "pipeline/image_folder.h"
#include "pipeline/tar_shards.h"

using namespace saturate;

namespace {

ImageTransform photos() {
    ImageTransform transform;
    transform.fit = Fit::random_resized_crop;
    transform.flip_horizontal = 0.5;
    transform.mean = {0.485f, 0.456f, 0.406f};
    transform.deviation = {0.229f, 0.224f, 0.225f};
    return transform;
}

ImageTransform greys() {
    ImageTransform transform;
    transform.width = transform.height = 128;
    transform.decode.channels = 1;
    transform.mean = {0.5f};
    transform.deviation = {0.25f};
    return transform;
}

Rate run_loader(std::shared_ptr<const SampleSource> source, std::int64_t batch_size, int workers,
                double seconds, std::int64_t begun_ns) {
    NullRecorder recorder;
    LoaderSettings settings;
    settings.batch_size = batch_size;
    settings.workers = workers;
    Loader loader(std::move(source), settings, recorder);
    return measure(loader, seconds, begun_ns);
}

// The bound: threads that write random images into a ring of batches, with nobody to wait for.
Rate run_bare(const SampleSource& source, std::int64_t batch_size, int threads, double seconds) {
    std::size_t slots = static_cast<std::size_t>(batch_size) * 4;
    std::vector<std::vector<std::byte>> memory;
    for (const FieldSpec& field : source.fields()) memory.emplace_back(field.bytes() * slots);
    std::atomic<std::int64_t> next = 0;
    std::int64_t start_cpu_ns = cpu_ns(), start_ns = now_ns();
    std::int64_t end_ns = start_ns + static_cast<std::int64_t>(seconds * 1e9);
    std::vector<std::jthread> pool;
    for (int i = 0; i < threads; ++i) {
        pool.emplace_back([&] {
            std::unique_ptr<Scratch> scratch = source.make_scratch();
            SampleCost cost;
            std::vector<std::byte*> places(memory.size());
            while (now_ns() < end_ns) {
                std::int64_t number = next.fetch_add(1);
                for (std::size_t f = 0; f < places.size(); ++f)
                    places[f] = memory[f].data() + source.fields()[f].bytes() *
                                                       (static_cast<std::size_t>(number) % slots);
                // A stride prime to any size in use: all images, in no order of their names.
                source.write({1, 0, number * 7919 % source.size()}, *scratch, places, cost);
            }
        });
    }
    pool.clear();
    double written = static_cast<double>(next);
    return {.per_second = written * 1e9 / static_cast<double>(now_ns() - start_ns),
            .cpu_us = static_cast<double>(cpu_ns() - start_cpu_ns) / 1000 / written};
}

Rate run(const std::vector<std::string>& words) {
    std::int64_t begun_ns = now_ns();
    bool colour = words[1] == "photos";
    const std::string& how = words[3];
    int workers = std::atoi(words[4].c_str());
    double seconds = std::atof(words[5].c_str());
    ImageTransform transform = colour ? photos() : greys();
    std::int64_t batch_size = colour ? 64 : 128;
    if (how == "exact") transform.decode.jpeg = JpegDecode::full;
    if (how == "decode") transform.width = transform.height = 1;
    if (how == "decode") transform.decode.jpeg = JpegDecode::region;
    if (how == "tar") {
        auto shards = std::make_shared<TarShards>(
            TarShardSettings{.shards = shards_in(words[2]), .transform = transform});
        return run_loader(shards, batch_size, workers, seconds, begun_ns);
    }
    auto source = std::make_shared<ImageFolder>(
        ImageFolderSettings{.root = words[2], .transform = transform});
    if (how == "loader") return run_loader(source, batch_size, workers, seconds, begun_ns);
    return run_bare(*source, batch_size, workers, seconds);
}

}  // namespace

int main(int count, char** arguments) {
    std::vector<std::string> words(arguments, arguments + count);
    if (count != 6) {
        fmt::print(stderr, "usage: {} photos|greys FOLDER loader|tar|bare|exact|decode N SECONDS\n",
                   words[0]);
        return 2;
    }
    try {
        print(run(words));
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 3;
    }
}
