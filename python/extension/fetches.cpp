// SPDX-License-Identifier: Apache-2.0
#include "fetches.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "telemetry/step_ring_layout.h"

namespace saturate {

namespace {

constexpr std::int64_t kLong = 1'000'000;  // ns: long enough to hide a close measurement
constexpr int kEvery = 16;

std::int64_t thread_cpu_ns() {
    timespec now;
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

}  // namespace

void Fetches::open(unsigned char* ring, int worker) {
    if (schedstat_ >= 0) ::close(schedstat_);
    schedstat_ = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ring_ = ring;
    worker_ = worker == 0 ? 0 : (worker - 1) % static_cast<int>(ring::kWorkerSlots - 1) + 1;
    left_ = 0;
    is_open_ = true;
}

// Reads the second number: ns ready to run without a core. A slow batch may mean a busy machine.
std::int64_t Fetches::delay() const {
    char text[64];
    ssize_t length = ::pread(schedstat_, text, sizeof text, 0);
    ssize_t i = 0;
    while (i < length && text[i] != ' ') ++i;
    std::int64_t value = 0;
    for (++i; i < length && text[i] >= '0' && text[i] <= '9'; ++i)
        value = 10 * value + (text[i] - '0');
    return value;
}

Fetches::Began Fetches::begin(std::int64_t now) {
    Began began{.wall = now};
    if (--left_ <= 0) {
        began.is_close = true;
        began.cpu = thread_cpu_ns();
        began.delay = delay();
    }
    return began;
}

void Fetches::end(const Began& began, std::int64_t now, std::int64_t loader) {
    auto wall = static_cast<std::uint64_t>(now - began.wall);
    std::size_t slot = static_cast<std::size_t>(loader % 8) * ring::kWorkerSlots +
                       static_cast<std::size_t>(worker_);
    auto* totals =
        reinterpret_cast<std::uint64_t*>(ring_ + ring::kFetchAt + slot * ring::kSlotBytes);
    ++totals[0];
    totals[1] += wall;
    if (wall > totals[2]) totals[2] = wall;
    if (!began.is_close) return;
    ++totals[3];
    totals[4] += wall;
    totals[5] += static_cast<std::uint64_t>(thread_cpu_ns() - began.cpu);
    totals[6] += static_cast<std::uint64_t>(delay() - began.delay);
    left_ = static_cast<std::int64_t>(wall) > kLong ? 1 : kEvery;
}

}  // namespace saturate
