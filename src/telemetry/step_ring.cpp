// SPDX-License-Identifier: Apache-2.0
#include "telemetry/step_ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "base/descriptor.h"

namespace saturate {

using namespace ring;

template <typename T>
T StepRing::at(std::size_t offset) const {
    T value;
    std::memcpy(&value, bytes_ + offset, sizeof value);
    return value;
}

std::optional<StepRing> StepRing::open(const std::filesystem::path& path) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!file.is_open()) return std::nullopt;
    // Check the file before mapping it: if it were too short, access would raise a bus error.
    unsigned char head[kWindowUntilAt];
    struct stat info {};
    bool is_ours = ::fstat(file.get(), &info) == 0 &&
                   info.st_size > static_cast<off_t>(kRecordsAt) &&
                   ::pread(file.get(), head, sizeof head, 0) == static_cast<ssize_t>(sizeof head) &&
                   std::memcmp(head, kMagic, 8) == 0;
    auto size = static_cast<std::size_t>(info.st_size);
    void* bytes = is_ours ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0)
                          : MAP_FAILED;
    if (bytes == MAP_FAILED) return std::nullopt;
    StepRing ring(static_cast<unsigned char*>(bytes), size);
    std::uint64_t capacity = ring.at<std::uint64_t>(kCapacityAt);
    if (ring.at<std::uint32_t>(kVersionAt) != kVersion ||
        ring.at<std::uint32_t>(kRecordBytesAt) != sizeof(RingRecord) || capacity == 0 ||
        capacity > (size - kRecordsAt) / sizeof(RingRecord))
        return std::nullopt;
    return ring;
}

StepRing::~StepRing() {
    if (bytes_) ::munmap(bytes_, size_);
}

StepRing::StepRing(StepRing&& other) noexcept
    : bytes_(std::exchange(other.bytes_, nullptr)),
      size_(other.size_),
      taken_(other.taken_),
      seen_(other.seen_),
      lost_(other.lost_) {}

void StepRing::read(bool all, const std::function<void(const RingRecord&)>& take) {
    auto capacity = at<std::uint64_t>(kCapacityAt);
    auto written = at<std::uint64_t>(kCountAt);
    std::atomic_thread_fence(std::memory_order_acquire);
    std::uint64_t until = all ? written : seen_;
    seen_ = written;
    // Leave a quarter of the ring to the writer, which continues while we read.
    std::uint64_t oldest =
        written > capacity - capacity / 4 ? written - (capacity - capacity / 4) : 0;
    if (taken_ < oldest) {
        lost_ += oldest - taken_;
        taken_ = oldest;
    }
    for (; taken_ < until; ++taken_)
        take(at<RingRecord>(kRecordsAt + (taken_ % capacity) * sizeof(RingRecord)));
}

std::int64_t StepRing::pid() const { return static_cast<std::int64_t>(at<std::uint64_t>(kPidAt)); }
int StepRing::rank() const { return at<std::int32_t>(kRankAt); }
int StepRing::world_size() const { return at<std::int32_t>(kWorldAt); }

std::vector<FetchTotals> StepRing::fetches() const {
    std::vector<FetchTotals> out;
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
        std::size_t offset = kFetchAt + slot * kSlotBytes;
        FetchTotals totals{.loader = static_cast<int>(slot / kWorkerSlots),
                           .worker = static_cast<int>(slot % kWorkerSlots) - 1,
                           .batches = at<std::uint64_t>(offset),
                           .wall_ns = at<std::uint64_t>(offset + 8),
                           .longest_ns = at<std::uint64_t>(offset + 16),
                           .measured = at<std::uint64_t>(offset + 24),
                           .measured_wall_ns = at<std::uint64_t>(offset + 32),
                           .cpu_ns = at<std::uint64_t>(offset + 40),
                           .delay_ns = at<std::uint64_t>(offset + 48)};
        if (totals.batches > 0) out.push_back(totals);
    }
    return out;
}

void StepRing::ask_facts() { bytes_[kFactsAt] = 1; }
void StepRing::ask_profile(int steps) { bytes_[kProfileAt] = static_cast<unsigned char>(steps); }

bool StepRing::open_window(std::int64_t until_ns) {
    extend_window(until_ns);
    // The script writes its mark first and then checks ours, so at least one side sees the other.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (at<std::uint8_t>(kOwnProfilerAt) == 0 && at<std::uint8_t>(kEndedAt) == 0) return true;
    close_window();
    return false;
}

void StepRing::extend_window(std::int64_t until_ns) {
    std::memcpy(bytes_ + kWindowUntilAt, &until_ns, sizeof until_ns);
}

void StepRing::close_window() { extend_window(0); }

}  // namespace saturate
