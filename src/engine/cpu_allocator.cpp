// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu_allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

#include "base/text.h"

namespace saturate {

namespace {

constexpr std::size_t kSmallest = 512;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kHugeFrom = std::size_t{4} << 20;  // blocks from this size use huge pages

// Stands before every block, and links the block while it is in the free list. 64 bytes, so that
// the data after it is aligned for the widest vectors.
struct alignas(64) Header {
    std::uint32_t size_class = 0;
    std::size_t bytes = 0;  // of the whole block
    Header* next = nullptr;
};
static_assert(sizeof(Header) == 64);

struct SizeClass {
    std::uint32_t index = 0;
    std::size_t bytes = 0;
};

// Eight sizes per power of two: at most an eighth is wasted.
SizeClass class_of(std::size_t bytes) {
    if (bytes <= kSmallest) return {0, kSmallest};
    int power = std::bit_width(bytes - 1) - 1;  // 2^power < bytes <= 2^(power+1)
    std::size_t base = std::size_t{1} << power, step = base / 8;
    std::size_t part = (bytes - base + step - 1) / step;  // 1 to 8
    return {static_cast<std::uint32_t>(power - 9) * 8 + static_cast<std::uint32_t>(part),
            base + part * step};
}

constexpr std::size_t kClasses = (63 - 9) * 8 + 9;

class CachingAllocator final : public c10::Allocator {
  public:
    c10::DataPtr allocate(std::size_t bytes) override {
        if (bytes == 0) return {nullptr, nullptr, &give_back, c10::Device(c10::kCPU)};
        void* data = take(bytes);
        return {data, data, &give_back, c10::Device(c10::kCPU)};
    }
    [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        default_copy_data(to, from, bytes);
    }

    void trim();

    std::atomic<std::int64_t> used{0}, peak{0}, reserved{0}, fresh{0}, limit{0};

  private:
    struct List {
        std::mutex mutex;
        Header* first = nullptr;
    };

    void* take(std::size_t bytes);
    Header* fresh_block(SizeClass size);
    [[noreturn]] void refuse(std::size_t bytes, const SizeClass& size, const char* why);
    static void give_back(void* data);

    std::array<List, kClasses> lists_;
};

// Never destroyed: tensors in static storage outlive everything else.
CachingAllocator& allocator() {
    static auto* the_one = new CachingAllocator;
    return *the_one;
}

void* CachingAllocator::take(std::size_t bytes) {
    if (bytes > (std::size_t{1} << 62)) throw std::bad_alloc();
    SizeClass size = class_of(bytes + sizeof(Header));
    auto whole = static_cast<std::int64_t>(size.bytes);
    std::int64_t now = used.fetch_add(whole) + whole;
    std::int64_t most = limit.load(std::memory_order_relaxed);
    if (most > 0 && now > most) refuse(bytes, size, "the limit is reached");
    std::int64_t seen = peak.load(std::memory_order_relaxed);
    while (now > seen && !peak.compare_exchange_weak(seen, now)) {
    }
    List& list = lists_[size.index];
    Header* block = nullptr;
    {
        std::lock_guard lock(list.mutex);
        block = list.first;
        if (block) list.first = block->next;
    }
    if (!block) block = fresh_block(size);
    if (!block) {
        trim();  // memory kept in other sizes may be enough
        block = fresh_block(size);
    }
    if (!block) refuse(bytes, size, "the system does not give more");
    return block + 1;
}

Header* CachingAllocator::fresh_block(SizeClass size) {
    bool huge = size.bytes >= kHugeFrom;
    std::size_t alignment = huge ? kHugePage : alignof(Header);
    std::size_t rounded = (size.bytes + alignment - 1) / alignment * alignment;
    void* memory = std::aligned_alloc(alignment, rounded);
    if (!memory) return nullptr;
    // Best effort: without huge pages it is only slower.
    if (huge) ::madvise(memory, rounded, MADV_HUGEPAGE);
    ++fresh;
    reserved += static_cast<std::int64_t>(size.bytes);
    return new (memory) Header{.size_class = size.index, .bytes = size.bytes};
}

void CachingAllocator::refuse(std::size_t bytes, const SizeClass& size, const char* why) {
    std::int64_t before = used.fetch_sub(static_cast<std::int64_t>(size.bytes)) -
                          static_cast<std::int64_t>(size.bytes);
    throw c10::OutOfMemoryError(
        {__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)},
        fmt::format("{} more on top of {} of tensors on the CPU: {}", bytes_text(bytes),
                    bytes_text(static_cast<std::uint64_t>(before)), why));
}

void CachingAllocator::give_back(void* data) {
    if (!data) return;
    CachingAllocator& self = allocator();
    Header* block = static_cast<Header*>(data) - 1;
    self.used.fetch_sub(static_cast<std::int64_t>(block->bytes));
    List& list = self.lists_[block->size_class];
    std::lock_guard lock(list.mutex);
    block->next = list.first;
    list.first = block;
}

void CachingAllocator::trim() {
    for (List& list : lists_) {
        Header* block = nullptr;
        {
            std::lock_guard lock(list.mutex);
            std::swap(block, list.first);
        }
        while (block) {
            Header* next = block->next;
            reserved -= static_cast<std::int64_t>(block->bytes);
            std::free(block);
            block = next;
        }
    }
}

}  // namespace

void use_caching_cpu_allocator() {
    constexpr std::uint8_t kPriority = 100;  // above LibTorch's own
    static std::once_flag once;
    std::call_once(once, [] { c10::SetCPUAllocator(&allocator(), kPriority); });
}

CpuMemory cpu_memory() {
    CachingAllocator& all = allocator();
    return {.used_bytes = all.used,
            .peak_bytes = all.peak,
            .reserved_bytes = all.reserved,
            .fresh_blocks = all.fresh};
}

void reset_cpu_peak() { allocator().peak = allocator().used.load(); }

void set_cpu_memory_limit(std::int64_t bytes) { allocator().limit = bytes; }

void release_cached_cpu_memory() { allocator().trim(); }

}  // namespace saturate
