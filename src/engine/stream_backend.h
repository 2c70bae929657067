// SPDX-License-Identifier: Apache-2.0
// The common part of all devices with streams, written with LibTorch's device-independent calls:
// copies on a side stream out of page-locked memory, events instead of waiting, work on a stream
// that can be captured. cuda/backend.cpp adds what needs CUDA's libraries. Training thread, except
// for PinnedMemory.
//
// Events are c10::Event, never CUDAEvent: destroying one on a lost device must not throw.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <deque>

#include "engine/device_backend.h"
#include "engine/lent_memory.h"

namespace saturate {

// Page-locked memory of a device, allocated by the calls of its library. Any thread. The guard is
// needed because the loader's threads have device 0 as their current device: without it every rank
// would open a context there.
class PinnedMemory final : public SlabMemory {
  public:
    struct Calls {
        void* (*allocate)(std::size_t bytes);  // null: out of memory
        void (*release)(void* memory);
    };
    PinnedMemory(torch::Device device, Calls calls) : device_(device), calls_(calls) {}
    [[nodiscard]] void* allocate(std::size_t bytes) override;
    void release(void* memory, std::size_t bytes) noexcept override;

  private:
    torch::Device device_;
    Calls calls_;
};

class StreamBackend : public DeviceBackend {
  public:
    [[nodiscard]] SimulatedStep* simulated() override { return nullptr; }
    [[nodiscard]] std::unique_ptr<DeviceReader> counters() override { return nullptr; }

    // Double buffering: while a step runs, the next batch is copied.
    [[nodiscard]] int uploads_ahead() const override { return 1; }
    std::shared_ptr<SlabMemory> slab_memory() override { return pins_ ? pinned_ : nullptr; }
    Upload start_upload(Batch batch) override;
    void await_upload(const Upload& upload) override;
    bool let_catch_up() override;

    std::unique_ptr<Reading> start_reading(const torch::Tensor& values) override;
    void synchronise() override { current().synchronize(); }
    std::optional<torch::Tensor> random_state() override;
    void set_random_state(const torch::Tensor& state) override;

    void mark_begin(std::int64_t step) override;
    void mark_end(std::int64_t step) override;
    std::optional<std::int64_t> step_ns(std::int64_t step) override;

    void release_cached() override;
    void run_beside(const std::function<void()>& work) override;
    void run_apart(const std::function<void()>& work) override { in_turn(work); }

  protected:
    // `streams`: the device that owns the streams; becomes the thread's current device. If `pins`,
    // batches are loaded into `pinned`. Readings use pinned memory in any case.
    StreamBackend(torch::Device streams, std::shared_ptr<SlabMemory> pinned, bool pins);

    // Runs `work` on the separate stream, after all earlier work and before all later work.
    void in_turn(const std::function<void()>& work);
    [[nodiscard]] const c10::Stream& apart() const { return apart_; }
    // Frees the memory that the device's allocator caches.
    virtual void empty_cache() = 0;
    // The device is lost. Its events are leaked on purpose: each one destroyed
    // would print a warning.
    void abandon() noexcept { (void)marks_.release(); }

  private:
    struct Marks {
        explicit Marks(c10::DeviceType type)
            : begin(type, c10::EventFlag::BACKEND_DEFAULT),  // with timing
              end(type, c10::EventFlag::BACKEND_DEFAULT) {}
        std::int64_t step = -1;
        bool ended = false;
        c10::Event begin, end;
    };
    struct Copying {
        std::shared_ptr<c10::Event> done;
        Batch batch;
    };

    [[nodiscard]] c10::Stream current() const;
    [[nodiscard]] Marks& marks_of(std::int64_t step);

    torch::Device streams_;
    c10::Stream copies_, apart_;
    std::shared_ptr<SlabMemory> pinned_, for_readings_;
    bool pins_;
    std::unique_ptr<std::deque<Marks>> marks_;
    std::deque<Copying> copying_;
    LentMemory lent_;
};

}  // namespace saturate
