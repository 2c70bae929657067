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
    // True if the device has passed a mark. Never waits; throws when the device is lost.
    using Passed = std::function<bool()>;

    // Returns a tensor with the same memory and another owner. The memory comes back here when the
    // last copy of that tensor is freed.
    [[nodiscard]] torch::Tensor lend(torch::Tensor tensor);
    // Puts the memory that came back since the last call behind a new mark, and frees the memory
    // whose mark the device has passed.
    void settle(const std::function<Passed()>& make_mark);
    // Frees everything. The caller knows that the device has finished all its work.
    void free_all();

  private:
    struct Returned;
    [[nodiscard]] std::vector<torch::Tensor> take_returned();

    std::shared_ptr<Returned> returned_;  // made by the first lend()
    std::deque<std::pair<Passed, std::vector<torch::Tensor>>> waiting_;
};

}  // namespace saturate
