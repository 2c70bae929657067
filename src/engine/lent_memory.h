// SPDX-License-Identifier: Apache-2.0
// Memory of batches that one stream of a device fills and another reads. It goes back to the
// allocator once the device has passed what read it, and never from a destructor: PyTorch's own way
// (recordStream) asks the device when a tensor is freed, which ends the process if the device is
// lost. Training thread; what was lent may end on any.
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
    // Whether the device has passed a mark. Asks, never waits; throws when the device is lost.
    using Passed = std::function<bool()>;

    // The same memory under another owner: it comes back here when nobody holds it any more.
    [[nodiscard]] torch::Tensor lend(torch::Tensor tensor);
    // What came back since the last call waits for a mark made now; what waited for one that the
    // device has passed is freed.
    void settle(const std::function<Passed()>& make_mark);
    // The device has passed everything.
    void free_all();

  private:
    struct Returned;
    [[nodiscard]] std::vector<torch::Tensor> take_returned();

    std::shared_ptr<Returned> returned_;  // made when the first is lent
    std::deque<std::pair<Passed, std::vector<torch::Tensor>>> waiting_;
};

}  // namespace saturate
