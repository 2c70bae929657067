// SPDX-License-Identifier: Apache-2.0
// Turns the events of the hooks into steps and writes them into the mapped ring: the hot path of
// `saturate run` inside a Python process. Does the same as class Steps in _saturate_shim/steps.py,
// which defines a step; tests/python/steps_equal.py compares the two. Uses no Python; called by
// module.cpp under the interpreter's lock. No exceptions, no allocation.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "telemetry/step_ring_layout.h"

namespace saturate {

// Maps an existing ring. Returns null and sets errno if that fails.
[[nodiscard]] unsigned char* map_ring(const char* path);

// An id of the current thread, without a call if the compiler has a builtin for it.
[[nodiscard]] inline const void* this_thread() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
    return __builtin_thread_pointer();
#else
    return reinterpret_cast<const void*>(::pthread_self());
#endif
}

class Steps {
  public:
    enum class Loop { none, loader, optimizer, backward };
    struct Place {
        std::int64_t pid;
        std::int32_t rank, world, local_world;
    };

    void reset();  // as new, for the calling thread; also in a forked child
    // Creates the ring with all its disk space, or continues one that this
    // process left before exec.
    [[nodiscard]] bool open(const char* path, const Place& place);
    void set_rank(std::int32_t rank, std::int32_t world);

    // Events of the loader; `owner` is its number.
    void asked(std::int64_t owner, std::int64_t now);
    void got(std::int64_t owner, std::int64_t asked_at, std::int64_t now, std::uint32_t samples);
    void ended(std::int64_t owner, std::int64_t asked_at, std::int64_t now);
    // Events of the optimizer and of backward.
    void optimizer_stepped(const void* optimizer, std::int64_t took, std::int64_t now);
    void backward_done(std::int64_t took, std::int64_t now);
    // Takes the value of the tensor that backward is called on; call before backward_done.
    void loss_known(double value) {
        now_.loss += value;
        ++now_.losses;
    }
    // The script read the loss after backward. Ignored if the step is over.
    void loss_read(double value) {
        if (now_.losses < now_.backwards) loss_known(value);
    }
    // The process ends: a step left open by a break ended with its last optimizer step.
    void finish();
    // Writes a pause, which does not count in the step around it.
    void put_aside(RingKind kind, std::int64_t owner, std::int64_t start, std::int64_t duration);
    void collected(std::int64_t ns) { now_.gc_ns += ns; }
    void waited_for_device(std::int64_t ns) {
        now_.read_ns += ns;
        ++now_.reads;
    }

    // Whether the shim's Python has work after the training step that just ended: in the first
    // steps, when `wake_ns` has passed, when the ring asks for it, or after every
    // step. True only once.
    [[nodiscard]] bool take_due();

    [[nodiscard]] unsigned char* bytes() const { return ring_; }
    [[nodiscard]] std::int64_t training() const { return training_; }
    [[nodiscard]] std::int64_t ended_at() const { return ended_at_; }
    [[nodiscard]] Loop loop() const { return loop_; }
    [[nodiscard]] bool is_own_thread() const { return thread_ == this_thread(); }
    // Only one thread's steps count: those of the thread that imported torch, until it stops
    // training and another thread trains. Returns true if from now on the calling thread counts.
    [[nodiscard]] bool adopt_thread(std::int64_t now);
    [[nodiscard]] std::int64_t foreign_steps() const { return foreign_steps_; }
    // Flags 64 and 68: requests of the reader. Reading a flag clears it.
    [[nodiscard]] unsigned char take_flag(std::size_t offset);
    // Flags 72 and 76: what the reader must know before it opens a window of the profiler.
    void set_flag(std::size_t offset, bool is_set);
    [[nodiscard]] std::int64_t window_until() const;  // 0: no window is open

    bool has_optimizer = false;  // an optimizer of torch exists
    bool every_step = false;
    std::uint32_t own_samples = 0;  // for a step without a loader
    std::int64_t wake_ns = 0;

  private:
    void clear();
    void put(RingKind kind, std::int64_t owner, std::int64_t until);
    void write(const RingRecord& record);
    void put_training(std::int64_t now);
    [[nodiscard]] bool goes_back_to_training(std::int64_t owner) const;
    void beat(Loop loop, std::int64_t now);

    unsigned char* ring_ = nullptr;
    std::uint64_t written_ = 0;
    RingRecord now_;  // the open step; start_ns 0: none
    std::int64_t owner_ = -1, pause_ns_ = 0, last_beat_ = 0;
    std::uint64_t taken_ = 0;       // loaders of the open step, a bit each ...
    std::uint64_t trained_on_ = 0;  // ... and of the last training step
    std::int64_t training_ = 0, ended_at_ = 0;
    std::int64_t optimizer_at_ = 0, optimizer_pause_ns_ = 0;  // of its last step
    std::int64_t backward_at_ = 0;                            // end of the last backward pass
    const void* first_optimizer_ = nullptr;
    const void* thread_ = nullptr;
    std::int64_t foreign_steps_ = 0;  // optimizer steps in other threads
    Loop loop_ = Loop::none;
    bool has_stepped_ = false, is_due_ = false;
};

}  // namespace saturate
