// SPDX-License-Identifier: Apache-2.0
#include "engine/stream_backend.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <new>

#include "engine/random_state.h"

namespace saturate {

namespace {

constexpr std::size_t kMarks = 512;                        // steps whose times can still be queried
constexpr std::size_t kLentMost = std::size_t{256} << 20;  // see let_catch_up()

c10::impl::VirtualGuardImpl calls_of(const torch::Device& device) { return {device.type()}; }

// Makes `device` the thread's current device first, because the next call opens a context there.
c10::Stream open_stream(const torch::Device& device, bool goes_first) {
    calls_of(device).setDevice(device);
    return calls_of(device).getStreamFromGlobalPool(device, goes_first);
}

// `size` bytes of memory, released with the last shared pointer to them.
std::shared_ptr<void> taken(const std::shared_ptr<SlabMemory>& memory, std::size_t size) {
    return {memory->allocate(size), [memory, size](void* held) { memory->release(held, size); }};
}

class StreamReading final : public Reading {
  public:
    StreamReading(const torch::Tensor& values, const std::shared_ptr<SlabMemory>& memory,
                  const c10::Stream& stream)
        : done_(stream.device_type()) {
        std::shared_ptr<void> held = taken(memory, values.nbytes());
        host_ = torch::from_blob(
            held.get(), values.sizes(), [held](void*) {}, values.options().device(torch::kCPU));
        host_.copy_(values, /*non_blocking=*/true);
        done_.record(stream);
    }
    torch::Tensor values() override {
        done_.synchronize();  // usually returns at once: the device wrote it long ago
        return host_;
    }

  private:
    torch::Tensor host_;
    c10::Event done_;
};

}  // namespace

void* PinnedMemory::allocate(std::size_t bytes) {
    c10::DeviceGuard guard(device_);
    void* memory = calls_.allocate(bytes);
    if (!memory) throw std::bad_alloc();
    return memory;
}

void PinnedMemory::release(void* memory, std::size_t) noexcept {
    try {
        c10::DeviceGuard guard(device_);
        calls_.release(memory);
    } catch (const std::exception&) {
        // The device is lost, and its memory with it.
    }
}

StreamBackend::StreamBackend(torch::Device streams, std::shared_ptr<SlabMemory> pinned, bool pins)
    : streams_(streams),
      copies_(open_stream(streams, true)),
      apart_(open_stream(streams, false)),
      pinned_(std::move(pinned)),
      for_readings_(kept_memory(pinned_)),
      pins_(pins),
      marks_(std::make_unique<std::deque<Marks>>()) {
    for (std::size_t i = 0; i < kMarks; ++i) marks_->emplace_back(streams.type());
}

c10::Stream StreamBackend::current() const { return calls_of(streams_).getStream(streams_); }

Upload StreamBackend::start_upload(Batch batch) {
    while (!copying_.empty() && copying_.front().done->query()) copying_.pop_front();
    // The bus cannot keep up: more waiting batches would fill the host's memory.
    for (; copying_.size() >= kCopiesHeld; copying_.pop_front())
        copying_.front().done->synchronize();
    // The mark goes on the compute stream, so it comes after all work that read earlier batches.
    lent_.settle([this]() -> LentMemory::Mark {
        auto read = std::make_shared<c10::Event>(streams_.type());
        read->record(current());
        return {[read] { return read->query(); }, [read] { read->synchronize(); }};
    });
    TensorBatch there;
    auto done = std::make_shared<c10::Event>(streams_.type());
    {
        c10::StreamGuard guard(copies_);
        for (const torch::Tensor& tensor : wrap_batch(batch))
            there.push_back(lent_.lend(tensor.to(device(), tensor.scalar_type(),
                                                 /*non_blocking=*/true, /*copy=*/true)));
        done->record(copies_);
    }
    // The slab goes back to the loader when the copy is complete, not when the
    // host drops the batch.
    copying_.push_back({done, batch});
    return {std::move(there), done, std::move(batch)};
}

void StreamBackend::await_upload(const Upload& upload) {
    std::static_pointer_cast<c10::Event>(upload.done)->block(current());
}

bool StreamBackend::let_catch_up() { return lent_.wait_for_more_than(kLentMost); }

std::unique_ptr<Reading> StreamBackend::start_reading(const torch::Tensor& values) {
    return std::make_unique<StreamReading>(values, for_readings_, current());
}

std::optional<torch::Tensor> StreamBackend::random_state() {
    return saturate::random_state(device());
}
void StreamBackend::set_random_state(const torch::Tensor& state) {
    saturate::set_random_state(device(), state);
}

StreamBackend::Marks& StreamBackend::marks_of(std::int64_t step) {
    return (*marks_)[static_cast<std::size_t>(step) % kMarks];
}

void StreamBackend::mark_begin(std::int64_t step) {
    Marks& marks = marks_of(step);
    marks.step = step;
    marks.ended = false;
    marks.begin.record(current());
}

void StreamBackend::mark_end(std::int64_t step) {
    Marks& marks = marks_of(step);
    marks.end.record(current());
    marks.ended = true;
}

std::optional<std::int64_t> StreamBackend::step_ns(std::int64_t step) {
    Marks& marks = marks_of(step);
    if (marks.step != step || !marks.ended || !marks.end.query()) return std::nullopt;
    return static_cast<std::int64_t>(marks.begin.elapsedTime(marks.end) * 1e6);
}

// Memory has run out, so waiting for the device is worth it.
void StreamBackend::release_cached() {
    synchronise();
    lent_.free_all();
    empty_cache();
}

void StreamBackend::run_beside(const std::function<void()>& work) {
    c10::StreamGuard guard(copies_);
    work();
    copies_.synchronize();
}

void StreamBackend::in_turn(const std::function<void()>& work) {
    c10::Stream now = current();
    c10::Event before(streams_.type());
    before.record(now);
    before.block(apart_);
    // Joins the streams even if `work` throws: the current stream may reuse
    // memory that `work` freed.
    struct Rejoin {
        ~Rejoin() {
            try {
                c10::Event after(apart.device_type());
                after.record(apart);
                after.block(now);
            } catch (const std::exception&) {
                // The device is lost: the next call on it reports that.
            }
        }
        c10::Stream apart, now;
    } rejoin{apart_, now};
    c10::StreamGuard guard(apart_);
    work();
}

}  // namespace saturate
