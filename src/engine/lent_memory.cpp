// SPDX-License-Identifier: Apache-2.0
#include "engine/lent_memory.h"

#include <ATen/ops/from_blob.h>

#include <mutex>

namespace saturate {

struct LentMemory::Returned {
    std::mutex mutex;
    std::vector<torch::Tensor> tensors;
};

torch::Tensor LentMemory::lend(torch::Tensor tensor) {
    if (!returned_) returned_ = std::make_shared<Returned>();
    auto come_back = [returned = returned_, tensor](void*) {
        std::lock_guard lock(returned->mutex);
        returned->tensors.push_back(tensor);
    };
    // Without target_device, from_blob would ask the device who owns this memory.
    return at::for_blob(tensor.mutable_data_ptr(), tensor.sizes())
        .strides(tensor.strides())
        .deleter(come_back)
        .options(tensor.options())
        .target_device(tensor.device())
        .make_tensor();
}

std::vector<torch::Tensor> LentMemory::take_returned() {
    if (!returned_) return {};
    std::lock_guard lock(returned_->mutex);
    return std::exchange(returned_->tensors, {});
}

void LentMemory::settle(const std::function<Mark()>& make_mark) {
    if (std::vector<torch::Tensor> back = take_returned(); !back.empty()) {
        waiting_.push_back({make_mark(), std::move(back)});
        for (const torch::Tensor& tensor : waiting_.back().tensors)
            waiting_bytes_ += tensor.nbytes();
    }
    while (!waiting_.empty() && waiting_.front().mark.is_passed()) free_front();
}

bool LentMemory::wait_for_more_than(std::size_t bytes) {
    bool waited = false;
    for (; waiting_bytes_ > bytes && waiting_.size() > 2; waited = true) {
        waiting_.front().mark.wait();
        free_front();
    }
    return waited;
}

void LentMemory::free_front() {
    for (const torch::Tensor& tensor : waiting_.front().tensors) waiting_bytes_ -= tensor.nbytes();
    waiting_.pop_front();
}

void LentMemory::free_all() {
    waiting_.clear();
    waiting_bytes_ = 0;
    (void)take_returned();
}

}  // namespace saturate
