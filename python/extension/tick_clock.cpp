// SPDX-License-Identifier: Apache-2.0
#include "tick_clock.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

namespace saturate {

namespace {

constexpr std::int64_t kRenewNs = 100'000'000;
constexpr std::int64_t kLongest = 10'000'000'000;  // the machine may have slept: start again

std::int64_t kernel_ns() {
    timespec now;
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

#if defined(__x86_64__)
std::uint64_t ticks() { return __builtin_ia32_rdtsc(); }
#else
std::uint64_t ticks() { return 0; }
#endif

}  // namespace

void TickClock::begin() {
    *this = TickClock();
    char name[8] = {};
    int fd = ::open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                    O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    is_trusted_ = ::read(fd, name, 4) == 4 && std::memcmp(name, "tsc\n", 4) == 0 && ticks() != 0;
    ::close(fd);
}

std::int64_t TickClock::now() {
    std::uint64_t passed = ticks() - tick_;
    if (passed >= valid_ticks_) return is_trusted_ ? renew() : kernel_ns();
    return ns_ + static_cast<std::int64_t>(static_cast<double>(passed) * ns_per_tick_);
}

std::int64_t TickClock::renew() {
    std::uint64_t before = ticks();
    std::int64_t ns = kernel_ns();
    std::uint64_t after = ticks();
    std::int64_t passed_ns = ns - ns_;
    // Signed: the counter of another core may be a little behind.
    double passed = static_cast<double>(static_cast<std::int64_t>(before - tick_)) +
                    static_cast<double>(after - before) / 2;
    bool was_known = ns_per_tick_ > 0;
    if (was_known && passed_ns < kLongest) {  // time never goes back if the two disagree
        double told = static_cast<double>(ns_ - ns) + passed * ns_per_tick_;
        if (told > 0 && told < static_cast<double>(kRenewNs)) ns += static_cast<std::int64_t>(told);
    }
    // If the thread was interrupted between the readings, they do not belong together.
    constexpr std::uint64_t kTogether = 10'000;
    if (after - before > kTogether) return ns;
    bool is_long = tick_ != 0 && passed_ns >= kRenewNs / 5 && passed_ns < kLongest;
    if (tick_ != 0 && !is_long && passed_ns < kLongest) return ns;  // too short to measure the rate
    ns_per_tick_ = is_long ? static_cast<double>(passed_ns) / passed : 0;
    tick_ = before + (after - before) / 2;
    ns_ = ns;
    valid_ticks_ = ns_per_tick_ > 0
                       ? static_cast<std::uint64_t>(static_cast<double>(kRenewNs) / ns_per_tick_)
                       : 0;
    return ns;
}

}  // namespace saturate
