// SPDX-License-Identifier: Apache-2.0
// An allocator that fails on demand, separately for each thread, because ranks are threads in these
// tests and the limit of the real allocator applies to the whole process.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <mutex>

#include "engine/cpu_allocator.h"

namespace saturate {

struct Refusal {
    std::size_t bytes = 0;  // refuse the next block of this size, once; 0: none
    bool all = false;       // refuse every block
    int count = 0;          // refused so far
};

inline Refusal& refusal() {
    thread_local Refusal of_this_thread;
    return of_this_thread;
}

class RefusingAllocator final : public c10::Allocator {
  public:
    // Installs it in front of the engine's allocator, until the process ends. Further calls do
    // nothing.
    static void install() {
        static std::once_flag once;
        std::call_once(once, [] {
            constexpr std::uint8_t kPriority = 200;  // higher than the engine's
            use_caching_cpu_allocator();
            c10::SetCPUAllocator(new RefusingAllocator(*c10::GetCPUAllocator()), kPriority);
        });
    }
    c10::DataPtr allocate(std::size_t bytes) override {
        Refusal& wish = refusal();
        if (bytes > 0 && (wish.all || wish.bytes == bytes)) {
            wish.bytes = 0;
            ++wish.count;
            throw c10::OutOfMemoryError({__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)},
                                        "refused by the test");
        }
        return behind_.allocate(bytes);
    }
    [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return behind_.raw_deleter(); }
    void copy_data(void* to, const void* from, std::size_t bytes) const override {
        default_copy_data(to, from, bytes);
    }

  private:
    explicit RefusingAllocator(c10::Allocator& behind) : behind_(behind) {}
    c10::Allocator& behind_;
};

// While it exists, its thread gets no memory for tensors.
class NoMemory {
  public:
    NoMemory() { refusal().all = true; }
    ~NoMemory() { refusal().all = false; }
    NoMemory(const NoMemory&) = delete;
    NoMemory& operator=(const NoMemory&) = delete;
};

}  // namespace saturate
