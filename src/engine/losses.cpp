// SPDX-License-Identifier: Apache-2.0
#include "engine/losses.h"

#include <algorithm>

namespace saturate {

LossLog::LossLog(DeviceBackend& backend, std::int64_t interval) : backend_(backend) {
    ring_ = torch::zeros({interval},
                         torch::TensorOptions().dtype(torch::kFloat).device(backend.device()));
    for (std::int64_t i = 0; i < interval; ++i) slots_.push_back(ring_.select(0, i));
}

void LossLog::put(std::int64_t step, const torch::Tensor& loss) {
    if (count_ == 0) first_step_ = step;
    slots_[count_++].copy_(loss, /*non_blocking=*/true);
}

void LossLog::start() {
    pending_ = Pending{first_step_, count_, backend_.start_reading(ring_)};
    count_ = 0;
}

std::optional<ReadLosses> LossLog::turn() {
    std::optional<ReadLosses> before;
    if (pending_) before = read(*pending_);
    pending_.reset();
    if (count_ > 0) start();
    return before;
}

std::vector<ReadLosses> LossLog::drain() {
    std::vector<ReadLosses> out;
    for (int i = 0; i < 2; ++i) {  // the pending reading first, then the rest
        if (auto some = turn()) out.push_back(std::move(*some));
    }
    return out;
}

ReadLosses LossLog::read(Pending& pending) {
    torch::Tensor values = pending.reading->values();
    const float* first = values.const_data_ptr<float>();
    return {pending.first_step, {first, first + pending.count}};
}

}  // namespace saturate
