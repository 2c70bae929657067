// SPDX-License-Identifier: Apache-2.0
// How fast a loader gives batches, for the programs of bench/loader.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <optional>
#include <string>

#include "base/clock.h"
#include "pipeline/loader.h"

namespace saturate {

struct Rate {
    double per_second = 0;
    double first_seconds = 0;
    double cpu_us = 0;  // of all threads, per sample: what a crowded machine does not change much
};

inline std::int64_t cpu_ns() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Not ru_maxrss: that keeps the peak of the process that started this one.
inline std::int64_t peak_bytes() {
    std::ifstream file("/proc/self/status");
    std::string word;
    while (file >> word) {
        std::int64_t kib = 0;
        if (word == "VmHWM:" && file >> kib) return kib * 1024;
    }
    return 0;
}

// Batches for about so many seconds, the first fifth not counted. `begun_ns` is when the source
// began to be opened.
inline Rate measure(Loader& loader, double seconds, std::int64_t begun_ns) {
    volatile unsigned char sink = 0;
    std::int64_t start_ns = now_ns(), counted_ns = 0, counted_cpu_ns = 0, samples = 0;
    Rate rate;
    while (true) {
        std::optional<Batch> batch = loader.next();
        if (!batch) continue;
        sink = static_cast<unsigned char>(batch->fields[0].data[0]);
        std::int64_t now = now_ns();
        if (rate.first_seconds == 0) rate.first_seconds = static_cast<double>(now - begun_ns) / 1e9;
        if (counted_ns > 0) samples += batch->size;
        double passed = static_cast<double>(now - start_ns) / 1e9;
        if (counted_ns == 0 && passed > seconds / 5) {
            counted_ns = now;
            counted_cpu_ns = cpu_ns();
        }
        if (passed > seconds && samples > 0) {
            rate.per_second =
                static_cast<double>(samples) * 1e9 / static_cast<double>(now - counted_ns);
            rate.cpu_us = static_cast<double>(cpu_ns() - counted_cpu_ns) / 1000 /
                          static_cast<double>(samples);
            (void)sink;
            return rate;
        }
    }
}

inline void print(const Rate& rate) {
    fmt::print(
        "{{\"rate\":{:.1f},\"first_seconds\":{:.4f},\"cpu_us\":{:.3f},\"memory_bytes\":{}}}\n",
        rate.per_second, rate.first_seconds, rate.cpu_us, peak_bytes());
}

}  // namespace saturate
