// SPDX-License-Identifier: Apache-2.0
// Sums and broadcasts between GPUs over NCCL, through PyTorch's own process group. Part of
// libsaturate_cuda.so. Nothing here waits for the device: the ranks notice a hung collective when
// they agree on the host, over Gloo.

#include "cuda/collectives.h"

#include <c10/core/Event.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <fmt/format.h>
#include <nccl.h>

#include <array>
#include <chrono>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "engine/nccl_environment.h"

namespace saturate {

namespace {

class NcclCollective final : public PendingCollective {
  public:
    explicit NcclCollective(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}
    void wait() override { work_->wait(); }  // makes the current stream wait, not the host
    [[nodiscard]] std::int64_t done_ns() const override { return 0; }

  private:
    c10::intrusive_ptr<c10d::Work> work_;
};

constexpr std::chrono::hours kPatience{24 * 365};

class NcclCollectives final : public DeviceCollectives {
  public:
    NcclCollectives(c10d::Store& store, int rank, int count) {
        auto shared = c10::intrusive_ptr<c10d::Store>::unsafe_reclaim_from_nonowning(&store);
        leave_nccl_errors_to_us();
        auto options = c10d::ProcessGroupNCCL::Options::create();
        options->timeout = kPatience;
        options->is_high_priority_stream = true;
        nccl_ = c10::make_intrusive<c10d::ProcessGroupNCCL>(
            c10::make_intrusive<c10d::PrefixStore>("nccl", std::move(shared)), rank, count,
            std::move(options));
        nccl_->enableCollectivesTiming();  // events around each collective
    }
    // All started collectives have been waited for. Without shutdown() the group's
    // destructor would warn.
    ~NcclCollectives() override {
        if (given_up_) return;
        try {
            nccl_->shutdown();
        } catch (const std::exception&) {
            // The device is lost: the process ends.
        }
    }
    std::unique_ptr<PendingCollective> start_sum(torch::Tensor tensor) override {
        std::vector<torch::Tensor> tensors{std::move(tensor)};
        return started(nccl_->allreduce(tensors));
    }
    std::unique_ptr<PendingCollective> start_broadcast(torch::Tensor tensor) override {
        std::vector<torch::Tensor> tensors{std::move(tensor)};
        return started(nccl_->broadcast(tensors));
    }

    void mark_waiting(std::int64_t mark) override {
        Marks& marks = place(mark);
        marks.mark = -1;
        marks.waiting.record(c10::cuda::getCurrentCUDAStream());
    }
    void mark_waited(std::int64_t mark) override {
        Marks& marks = place(mark);
        marks.waited.record(c10::cuda::getCurrentCUDAStream());
        std::lock_guard lock(mutex_);
        marks.works = std::exchange(since_, {});
        marks.mark = mark;
    }
    AtMark stands_at(std::int64_t mark) override {
        Marks& marks = place(mark);
        // If its times were read or a later mark has taken its place, the mark was passed long ago.
        if (marks.mark != mark || marks.waited.query()) return AtMark::passed;
        return marks.waiting.query() ? AtMark::waiting : AtMark::before;
    }
    // The collectives follow each other on one stream, so their times add up.
    std::optional<CollectiveTimes> times(std::int64_t mark) override {
        Marks& marks = place(mark);
        if (marks.mark != mark || !marks.waited.query()) return std::nullopt;
        CollectiveTimes out{.exposed_ns = ns(marks.waiting.elapsedTime(marks.waited))};
        for (const auto& work : marks.works) {
            if (!work->isCompleted()) return std::nullopt;
            out.total_ns += ns(work->getDuration());
        }
        marks.works.clear();
        marks.mark = -1;
        return out;
    }

    void give_up() noexcept override {
        if (std::exchange(given_up_, true)) return;
        try {
            nccl_->abort();
        } catch (const std::exception&) {
            // The communicator is already gone.
        }
    }

  private:
    struct Marks {
        std::int64_t mark = -1;
        // c10::Event, because the destructor of CUDAEvent throws on a lost device,
        // which ends the process.
        c10::Event waiting{torch::kCUDA, c10::EventFlag::BACKEND_DEFAULT};  // with timing
        c10::Event waited{torch::kCUDA, c10::EventFlag::BACKEND_DEFAULT};
        std::vector<c10::intrusive_ptr<c10d::Work>> works;
    };
    static std::int64_t ns(double milliseconds) {
        return static_cast<std::int64_t>(milliseconds * 1e6);
    }
    [[nodiscard]] Marks& place(std::int64_t mark) {
        return marks_[static_cast<std::size_t>(mark) % marks_.size()];
    }
    // Also called from autograd's threads.
    std::unique_ptr<PendingCollective> started(c10::intrusive_ptr<c10d::Work> work) {
        std::lock_guard lock(mutex_);
        since_.push_back(work);
        return std::make_unique<NcclCollective>(std::move(work));
    }

    c10::intrusive_ptr<c10d::ProcessGroupNCCL> nccl_;
    bool given_up_ = false;
    std::array<Marks, 512> marks_;
    std::mutex mutex_;
    std::vector<c10::intrusive_ptr<c10d::Work>> since_;  // started since the last mark
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
        if (!text.empty()) return {"", false, fmt::format("GPU {}: {}", rank, text)};
    }
    return {"", true, fmt::format("sum and broadcast of 4 MiB over {} GPUs are exact", gpus)};
}

std::string nccl_version() {
    int version = 0;
    if (ncclGetVersion(&version) != ncclSuccess) return "unknown";
    return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

std::unique_ptr<DeviceCollectives> open_nccl(c10d::Store& store, int rank, int count) {
    return std::make_unique<NcclCollectives>(store, rank, count);
}

}  // namespace saturate
