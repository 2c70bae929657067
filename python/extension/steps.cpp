// SPDX-License-Identifier: Apache-2.0
#include "steps.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace saturate {

namespace {

constexpr std::uint64_t kCapacity = 1u << 16;
constexpr std::size_t kRingBytes = ring::kRecordsAt + kCapacity * sizeof(RingRecord);
// After this many optimizer steps on one batch, the loader no longer marks the step boundaries.
constexpr std::uint32_t kManySteps = 64;
constexpr std::int64_t kFirstSteps = 3;  // Python looks after each of these
constexpr std::int64_t kLongEnd = 1'000'000;
constexpr std::int64_t kIdleNs = 10'000'000'000;  // then another thread may take over

template <typename T>
void put_at(unsigned char* bytes, std::size_t offset, T value) {
    std::memcpy(bytes + offset, &value, sizeof value);
}

template <typename T>
T value_at(const unsigned char* bytes, std::size_t offset) {
    T value;
    std::memcpy(&value, bytes + offset, sizeof value);
    return value;
}

// Maps and closes fd. If it returns null, errno has the reason.
unsigned char* mapped(int fd, std::size_t size) {
    void* bytes =
        size > 0 ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    int error = errno;
    ::close(fd);
    errno = error;
    return bytes == MAP_FAILED ? nullptr : static_cast<unsigned char*>(bytes);
}

// Reserves all disk space: writing into a mapped file without space on the disk kills the process.
unsigned char* make_ring(const char* path) {
    int fd = ::open(path, O_RDWR | O_CLOEXEC | O_CREAT, 0600);
    if (fd < 0) return nullptr;
    int error = ::posix_fallocate(fd, 0, static_cast<off_t>(kRingBytes));
    if (error == 0) return mapped(fd, kRingBytes);
    ::close(fd);
    ::unlink(path);
    errno = error;
    return nullptr;
}

// Loaders are numbered as they start; one in 64 shares its bit.
std::uint64_t bit_of(std::int64_t loader) { return 1ULL << (loader & 63); }

}  // namespace

unsigned char* map_ring(const char* path) {
    int fd = ::open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return nullptr;
    struct stat info = {};
    bool is_whole = ::fstat(fd, &info) == 0 && info.st_size >= static_cast<off_t>(ring::kRecordsAt);
    return mapped(fd, is_whole ? static_cast<std::size_t>(info.st_size) : 0);
}

void Steps::reset() {
    if (ring_) ::munmap(ring_, kRingBytes);
    *this = Steps();
    thread_ = this_thread();
}

void Steps::clear() {
    now_ = RingRecord();
    owner_ = -1;
    pause_ns_ = 0;
    taken_ = 0;
}

bool Steps::open(const char* path, const Place& place) {
    if (ring_) return true;
    unsigned char* bytes = make_ring(path);
    if (!bytes) return false;
    auto pid = static_cast<std::uint64_t>(place.pid);
    bool goes_on = std::memcmp(bytes, ring::kMagic, 8) == 0 &&
                   value_at<std::uint64_t>(bytes, ring::kPidAt) == pid &&
                   value_at<std::uint64_t>(bytes, ring::kCapacityAt) == kCapacity;
    written_ = goes_on ? value_at<std::uint64_t>(bytes, ring::kCountAt) : 0;
    put_at(bytes, ring::kVersionAt, ring::kVersion);
    put_at(bytes, ring::kRecordBytesAt, static_cast<std::uint32_t>(sizeof(RingRecord)));
    put_at(bytes, ring::kCapacityAt, kCapacity);
    put_at(bytes, ring::kPidAt, pid);
    put_at(bytes, ring::kRankAt, place.rank);
    put_at(bytes, ring::kWorldAt, place.world);
    put_at(bytes, ring::kLocalWorldAt, place.local_world);
    put_at(bytes, ring::kWindowUntilAt, std::int64_t{0});
    bytes[ring::kOwnProfilerAt] = bytes[ring::kEndedAt] = 0;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    std::memcpy(bytes, ring::kMagic, 8);  // last: from now on readers may use it
    ring_ = bytes;
    return true;
}

void Steps::set_rank(std::int32_t rank, std::int32_t world) {
    if (!ring_) return;
    put_at(ring_, ring::kRankAt, rank);
    put_at(ring_, ring::kWorldAt, world);
}

unsigned char Steps::take_flag(std::size_t offset) {
    if (!ring_) return 0;
    unsigned char value = *const_cast<volatile unsigned char*>(ring_ + offset);
    if (value != 0) ring_[offset] = 0;
    return value;
}

void Steps::set_flag(std::size_t offset, bool is_set) {
    if (!ring_) return;
    ring_[offset] = is_set ? 1 : 0;
    // `run` writes the end of the window and then reads this flag; the fence ensures that one of
    // the two sides sees the other's write.
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

std::int64_t Steps::window_until() const {
    if (!ring_) return 0;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return value_at<std::int64_t>(ring_, ring::kWindowUntilAt);
}

bool Steps::adopt_thread(std::int64_t now) {
    bool is_idle = !has_stepped_ || now - optimizer_at_ > kIdleNs;
    if (!is_idle) {
        ++foreign_steps_;
        return false;
    }
    clear();
    thread_ = this_thread();
    last_beat_ = 0;
    first_optimizer_ = nullptr;
    return true;
}

bool Steps::take_due() {
    bool is_due = is_due_;
    is_due_ = false;
    return is_due;
}

void Steps::write(const RingRecord& record) {
    if (!ring_) return;
    std::memcpy(ring_ + ring::kRecordsAt + (written_ % kCapacity) * sizeof record, &record,
                sizeof record);
    ++written_;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    put_at(ring_, ring::kCountAt, written_);
}

void Steps::put(RingKind kind, std::int64_t owner, std::int64_t until) {
    now_.kind = static_cast<std::uint32_t>(kind);
    now_.loader = static_cast<std::uint32_t>(owner);
    now_.duration_ns = until - now_.start_ns - pause_ns_;
    write(now_);
}

void Steps::put_aside(RingKind kind, std::int64_t owner, std::int64_t start,
                      std::int64_t duration) {
    write({.kind = static_cast<std::uint32_t>(kind),
           .loader = static_cast<std::uint32_t>(owner),
           .start_ns = start,
           .duration_ns = duration});
    if (now_.start_ns) pause_ns_ += duration;
}

void Steps::put_training(std::int64_t now) {
    put(RingKind::training, owner_, now);
    trained_on_ = taken_;
    ++training_;
    ended_at_ = now;
    clear();
    bool is_asked = ring_ && (*const_cast<volatile unsigned char*>(ring_ + ring::kFactsAt) != 0 ||
                              *const_cast<volatile unsigned char*>(ring_ + ring::kProfileAt) != 0);
    is_due_ = training_ <= kFirstSteps || now > wake_ns || every_step || is_asked;
}

void Steps::asked(std::int64_t owner, std::int64_t now) {
    if (!now_.start_ns) {  // collections and reads before belong to no step
        now_.gc_ns = now_.read_ns = 0;
        now_.reads = 0;
        return;
    }
    if (now_.backwards || now_.optimizer_steps) {
        if (now_.optimizer_steps || !has_stepped_) put_training(now);
    } else if (owner == owner_ || goes_back_to_training(owner)) {
        put(RingKind::evaluation, owner_, now);
        clear();
    }
    // Otherwise another loader's batch joins this step (zip), or gradients are accumulated over
    // several batches.
}

// An evaluation need not come to the end of its loader: what it took last is no part of the step
// that comes now.
bool Steps::goes_back_to_training(std::int64_t owner) const {
    return (trained_on_ & bit_of(owner)) != 0 && (trained_on_ & taken_) == 0;
}

void Steps::got(std::int64_t owner, std::int64_t asked_at, std::int64_t now,
                std::uint32_t samples) {
    if (now_.start_ns) {
        now_.wait_ns += now - asked_at;
        now_.samples += samples;
    } else {
        now_.start_ns = asked_at;
        now_.wait_ns = now - asked_at;
        now_.samples = samples;
        loop_ = Loop::loader;
    }
    ++now_.batches;
    owner_ = owner;
    taken_ |= bit_of(owner);
}

void Steps::ended(std::int64_t owner, std::int64_t asked_at, std::int64_t now) {
    if (now_.start_ns) {
        if (now_.backwards || now_.optimizer_steps) {
            put_training(asked_at);
        } else {
            put(RingKind::evaluation, owner, asked_at);
            clear();
        }
    }
    last_beat_ = 0;
    if (now - asked_at > kLongEnd) put_aside(RingKind::loader, owner, asked_at, now - asked_at);
}

void Steps::finish() {
    if (!now_.start_ns || !now_.optimizer_steps) return;
    pause_ns_ = optimizer_pause_ns_;
    put_training(optimizer_at_);
}

void Steps::optimizer_stepped(const void* optimizer, std::int64_t took, std::int64_t now) {
    // Lightning and LBFGS give step() a closure, in which forward and backward pass happen.
    now_.optimizer_ns += std::min(took, now - backward_at_);
    ++now_.optimizer_steps;
    optimizer_at_ = now;
    optimizer_pause_ns_ = pause_ns_;
    has_stepped_ = true;
    if (now_.start_ns && loop_ == Loop::loader) {
        if (now_.optimizer_steps < kManySteps) return;
        clear();  // one batch for all steps: next(iter(loader)) before the loop
        first_optimizer_ = nullptr;
    }
    if (!first_optimizer_) first_optimizer_ = optimizer;
    if (first_optimizer_ == optimizer) beat(Loop::optimizer, now);
}

void Steps::backward_done(std::int64_t took, std::int64_t now) {
    now_.backward_ns += took;
    ++now_.backwards;
    backward_at_ = now;
    // A training loop without an optimizer of torch.
    if (!has_optimizer && !(now_.start_ns && loop_ == Loop::loader)) beat(Loop::backward, now);
}

void Steps::beat(Loop loop, std::int64_t now) {
    loop_ = loop;
    if (last_beat_) {
        now_.start_ns = last_beat_;
        if (now_.samples == 0) now_.samples = own_samples;
        put_training(now);
    } else {
        clear();
    }
    last_beat_ = now;
}

}  // namespace saturate
