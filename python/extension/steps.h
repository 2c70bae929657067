// SPDX-License-Identifier: Apache-2.0
// Turns what the hooks see into steps and writes them into the mapped ring: the hot path of
// `saturate run` inside a Python process, the same as class Steps in _saturate_shim/steps.py, which
// says what a step is and is compared with it by tests/python/steps_equal.py. Knows no Python;
// called by module.cpp under the interpreter's lock. No exceptions, no allocation.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "telemetry/step_ring_layout.h"

namespace saturate {

// The bytes of a ring that is there; null: none, errno says why.
[[nodiscard]] unsigned char* map_ring(const char* path);

// Tells threads apart without a call where the compiler can.
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

    void reset();  // as new, of the thread that calls; also in a forked child
    // Makes the ring with all its room, or goes on with one that this process left before exec.
    [[nodiscard]] bool open(const char* path, const Place& place);
    void set_rank(std::int32_t rank, std::int32_t world);

    // From the loader; `owner` is its number.
    void asked(std::int64_t owner, std::int64_t now);
    void got(std::int64_t owner, std::int64_t asked_at, std::int64_t now, std::uint32_t samples);
    void ended(std::int64_t owner, std::int64_t asked_at, std::int64_t now);
    // From the optimizer and from backward.
    void optimizer_stepped(const void* optimizer, std::int64_t took, std::int64_t now);
    void backward_done(std::int64_t took, std::int64_t now);
    // What backward was called on; before backward_done.
    void loss_known(double value) {
        now_.loss += value;
        ++now_.losses;
    }
    // The script read it after backward; nothing where the step is over.
    void loss_read(double value) {
        if (now_.losses < now_.backwards) loss_known(value);
    }
    // The process ends: a step that break left open ended with its optimizer.
    void finish();
    // A pause: not part of the step around it.
    void put_aside(RingKind kind, std::int64_t owner, std::int64_t start, std::int64_t duration);
    void collected(std::int64_t ns) { now_.gc_ns += ns; }
    void waited_for_device(std::int64_t ns) {
        now_.read_ns += ns;
        ++now_.reads;
    }

    // Whether the shim's Python has something to do after the training step that just ended: in the
    // first ones, when `wake_ns` is past, when the ring asks for it, or after every one. Said once.
    [[nodiscard]] bool take_due();

    [[nodiscard]] unsigned char* bytes() const { return ring_; }
    [[nodiscard]] std::int64_t training() const { return training_; }
    [[nodiscard]] std::int64_t ended_at() const { return ended_at_; }
    [[nodiscard]] Loop loop() const { return loop_; }
    [[nodiscard]] bool is_own_thread() const { return thread_ == this_thread(); }
    // Steps are those of one thread: of the one that imported torch, until another trains while it
    // does not. True: from now on of the thread that calls.
    [[nodiscard]] bool adopt_thread(std::int64_t now);
    [[nodiscard]] std::int64_t foreign_steps() const { return foreign_steps_; }
    // 64, 68: what the reader asks for; taken once.
    [[nodiscard]] unsigned char take_flag(std::size_t offset);
    // 72, 76: what the reader must know before it opens a window of the profiler.
    void set_flag(std::size_t offset, bool is_set);
    [[nodiscard]] std::int64_t window_until() const;  // 0: none is open

    bool has_optimizer = false;  // one of torch's was made
    bool every_step = false;
    std::uint32_t own_samples = 0;  // of a step without a loader
    std::int64_t wake_ns = 0;

  private:
    void clear();
    void put(RingKind kind, std::int64_t owner, std::int64_t until);
    void write(const RingRecord& record);
    void put_training(std::int64_t now);
    void beat(Loop loop, std::int64_t now);

    unsigned char* ring_ = nullptr;
    std::uint64_t written_ = 0;
    RingRecord now_;  // the open step; start_ns 0: none is open
    std::int64_t owner_ = -1, pause_ns_ = 0, last_beat_ = 0;
    std::int64_t training_ = 0, ended_at_ = 0;
    std::int64_t optimizer_at_ = 0, optimizer_pause_ns_ = 0;  // when it stepped last
    const void* first_optimizer_ = nullptr;
    const void* thread_ = nullptr;
    std::int64_t foreign_steps_ = 0;  // of optimizers in other threads
    Loop loop_ = Loop::none;
    bool has_stepped_ = false, is_due_ = false;
};

}  // namespace saturate
