// SPDX-License-Identifier: Apache-2.0
// Batch memory that one stream of a device fills and another reads. It goes back to the allocator
// once the device has finished reading it, and never from a destructor: PyTorch's own mechanism
// (recordStream) queries the device when a tensor is freed, which ends the process if the device is
// lost. Training thread; lent tensors may be freed on any thread.
#pragma once

#include <torch/types.h>

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace saturate {

class LentMemory {
  public:
    // A place in the device's work. Both throw when the device is lost.
    struct Mark {
        std::function<bool()> is_passed;  // never waits
        std::function<void()> wait;
    };

    // Returns a tensor with the same memory and another owner. The memory comes back here when the
    // last copy of that tensor is freed.
    [[nodiscard]] torch::Tensor lend(torch::Tensor tensor);
    // Puts the memory that came back since the last call behind a new mark, and frees the memory
    // whose mark the device has passed.
    void settle(const std::function<Mark()>& make_mark);
    // While more than `bytes` wait for the device, waits for the oldest mark and frees its memory.
    // Never waits for the last two marks, so that the device always has work. True if it waited.
    bool wait_for_more_than(std::size_t bytes);
    // Frees everything. The caller knows that the device has finished all its work.
    void free_all();

  private:
    struct Returned;
    struct Waiting {
        Mark mark;
        std::vector<torch::Tensor> tensors;
    };
    [[nodiscard]] std::vector<torch::Tensor> take_returned();
    void free_front();

    std::shared_ptr<Returned> returned_;  // made by the first lend()
    std::deque<Waiting> waiting_;
    std::size_t waiting_bytes_ = 0;
};

}  // namespace saturate
