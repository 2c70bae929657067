// SPDX-License-Identifier: Apache-2.0
// Sums and broadcasts between GPUs over NCCL, on PyTorch's own process group. Part of
// libsaturate_cuda.so. Nothing here waits for the device: a hung collective is noticed by the
// ranks' agreement on the host, which goes over Gloo.

#include "cuda/collectives.h"

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <fmt/format.h>

#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace saturate {

namespace {

class NcclCollective final : public Collective {
  public:
    explicit NcclCollective(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}
    void wait() override { work_->wait(); }  // the current stream waits, the host does not
    [[nodiscard]] std::int64_t done_ns() const override { return 0; }

  private:
    c10::intrusive_ptr<c10d::Work> work_;
};

class NcclCollectives final : public DeviceCollectives {
  public:
    NcclCollectives(c10d::Store& store, int rank, int count) {
        auto shared = c10::intrusive_ptr<c10d::Store>::unsafe_reclaim_from_nonowning(&store);
        auto options = c10d::ProcessGroupNCCL::Options::create();
        options->is_high_priority_stream = true;
        nccl_ = c10::make_intrusive<c10d::ProcessGroupNCCL>(
            c10::make_intrusive<c10d::PrefixStore>("nccl", std::move(shared)), rank, count,
            std::move(options));
    }
    std::unique_ptr<Collective> start_sum(torch::Tensor tensor) override {
        std::vector<torch::Tensor> tensors{std::move(tensor)};
        return std::make_unique<NcclCollective>(nccl_->allreduce(tensors));
    }
    std::unique_ptr<Collective> start_broadcast(torch::Tensor tensor) override {
        std::vector<torch::Tensor> tensors{std::move(tensor)};
        return std::make_unique<NcclCollective>(nccl_->broadcast(tensors));
    }

    void give_up() noexcept override {
        try {
            nccl_->abort();
        } catch (const std::exception&) {
            // the communicator is gone already
        }
    }

  private:
    c10::intrusive_ptr<c10d::ProcessGroupNCCL> nccl_;
};

}  // namespace

SelftestCheck check_collectives() {
    int gpus = c10::cuda::device_count();
    auto store = c10::make_intrusive<c10d::HashStore>();
    std::vector<std::string> wrong(static_cast<std::size_t>(gpus));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < gpus; ++rank) {
        threads.emplace_back([&, rank] {
            try {
                c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(rank));
                NcclCollectives nccl(*store, rank, gpus);
                torch::Tensor sum =
                    torch::full({1 << 20}, static_cast<double>(rank + 1), torch::kCUDA);
                torch::Tensor first = sum.clone();
                nccl.start_sum(sum)->wait();
                nccl.start_broadcast(first)->wait();
                auto expected = static_cast<double>(gpus) * (gpus + 1) / 2;
                bool right =
                    (sum == expected).all().item<bool>() && (first == 1).all().item<bool>();
                if (!right) wrong[static_cast<std::size_t>(rank)] = "another sum";
            } catch (const std::exception& error) {
                wrong[static_cast<std::size_t>(rank)] = error.what();
            }
        });
    }
    threads.clear();  // joins
    for (int rank = 0; rank < gpus; ++rank) {
        const std::string& text = wrong[static_cast<std::size_t>(rank)];
        if (!text.empty()) return {"NCCL", false, fmt::format("GPU {}: {}", rank, text)};
    }
    return {"NCCL", true, fmt::format("sum and broadcast of 4 MiB over {} GPUs are exact", gpus)};
}

std::unique_ptr<DeviceCollectives> open_nccl(c10d::Store& store, int rank, int count) {
    return std::make_unique<NcclCollectives>(store, rank, count);
}

}  // namespace saturate
