// SPDX-License-Identifier: Apache-2.0
// Stops loaders with random settings after a random number of batches. Normal tests do this a few
// hundred times, the soak test ten thousand times.
#pragma once

#include <optional>
#include <random>

#include "pipeline/fake_source.h"
#include "pipeline/loader.h"

namespace saturate {

// Returns the total number of batches. A thread that is not joined makes it hang or crash.
inline std::int64_t stop_at_random_points(int times, unsigned seed) {
    std::mt19937 random(seed);
    NullRecorder recorder;
    std::int64_t batches = 0;
    for (int i = 0; i < times; ++i) {
        bool faulty = random() % 4 == 0;
        auto source = std::make_shared<FakeSource>(static_cast<std::int64_t>(50 + random() % 200),
                                                   [faulty](std::int64_t index) {
                                                       if (faulty && index % 7 == 3)
                                                           throw BadSample("x", "broken");
                                                       if (faulty && index % 11 == 5)
                                                           throw BusySample("x", "busy");
                                                   });
        LoaderSettings settings{.batch_size = static_cast<std::int64_t>(1 + random() % 16),
                                .workers = static_cast<int>(random() % 5) - 1,
                                .cores = 2,
                                .prefetch_factor = static_cast<int>(1 + random() % 3),
                                .seed = random(),
                                .bad_samples_max = 1000,
                                .retry_pause = std::chrono::milliseconds(0)};
        std::vector<Batch> held;
        Loader loader(source, settings, recorder);
        for (unsigned left = random() % 20; left > 0; --left) {
            std::optional<Batch> batch = loader.next();
            if (!batch) continue;
            ++batches;
            if (random() % 3 == 0) held.push_back(std::move(*batch));
            if (random() % 4 == 0) held.clear();
        }
    }
    return batches;
}

}  // namespace saturate
