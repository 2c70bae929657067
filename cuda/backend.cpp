// SPDX-License-Identifier: Apache-2.0
// A GPU as the trainer's device (src/engine/device_backend.h): copies on a side stream out of
// page-locked memory, events instead of waiting, a captured graph of the whole step. Part of
// libsaturate_cuda.so.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <array>
#include <deque>
#include <mutex>

#include "cuda/collectives.h"
#include "cuda/selftest.h"
#include "engine/device_backend.h"
#include "engine/lent_memory.h"
#include "engine/random_state.h"

namespace saturate {

namespace {

using at::cuda::CUDAEvent;
using c10::cuda::CUDAStream;
using c10::cuda::CUDAStreamGuard;

// Called from the loader's threads, whose current device is GPU 0: without the guard every rank
// would open a context there, with either call.
class PinnedMemory final : public SlabMemory {
  public:
    explicit PinnedMemory(c10::DeviceIndex index) : index_(index) {}
    [[nodiscard]] void* allocate(std::size_t bytes) override {
        c10::cuda::CUDAGuard guard(index_);
        void* memory = nullptr;
        if (cudaHostAlloc(&memory, bytes, cudaHostAllocDefault) != cudaSuccess) {
            (void)cudaGetLastError();
            throw std::bad_alloc();
        }
        return memory;
    }
    void release(void* memory, std::size_t) noexcept override {
        try {
            c10::cuda::CUDAGuard guard(index_);
            (void)cudaFreeHost(memory);
        } catch (const std::exception&) {
            // the device is lost, and its memory with it
        }
    }

  private:
    c10::DeviceIndex index_;
};

class LateReading final : public Reading {
  public:
    explicit LateReading(const torch::Tensor& values) {
        host_ =
            torch::empty(values.sizes(), values.options().device(torch::kCPU).pinned_memory(true));
        host_.copy_(values, /*non_blocking=*/true);
        done_.record(c10::cuda::getCurrentCUDAStream());
    }
    torch::Tensor values() override {
        done_.synchronize();  // a whole interval later: the device passed it long ago
        return host_;
    }

  private:
    torch::Tensor host_;
    CUDAEvent done_;
};

class Graph final : public CapturedStep {
  public:
    void replay() override { graph.replay(); }
    at::cuda::CUDAGraph graph;
};

class CudaBackend final : public DeviceBackend {
  public:
    CudaBackend(int index, const DeviceOptions& options)
        : index_(static_cast<c10::DeviceIndex>(index)),
          copies_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, index_)),
          apart_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index_)),
          pinned_(options.pin_memory ? std::make_shared<PinnedMemory>(index_) : nullptr) {
        c10::cuda::set_device(index_);
        at::Context& context = at::globalContext();
        use_tf32(options.tf32);
        context.setBenchmarkCuDNN(options.cudnn_benchmark && !options.deterministic);
        context.setDeterministicAlgorithms(options.deterministic, true);
        if (options.threads > 0) at::set_num_threads(options.threads);
        for (Marks& marks : marks_) {
            marks.begin = CUDAEvent(cudaEventDefault);  // with timing
            marks.end = CUDAEvent(cudaEventDefault);
        }
    }

    [[nodiscard]] torch::Device device() const override { return {torch::kCUDA, index_}; }
    [[nodiscard]] std::string name() const override {
        return "cuda:" + std::to_string(index_) + " (" +
               at::cuda::getDeviceProperties(index_)->name + ")";
    }
    [[nodiscard]] bool has_bf16() const override {
        return at::cuda::getDeviceProperties(index_)->major >= 8;
    }
    [[nodiscard]] std::string pci_bus_id() const override {
        char text[32] = {};
        if (cudaDeviceGetPCIBusId(text, sizeof text, index_) == cudaSuccess) return text;
        (void)cudaGetLastError();
        return "";
    }

    // Events tell the span of a step; what part of it a kernel was at work, a profiler tells.
    [[nodiscard]] DeviceProof proves() const override { return {.capture = true}; }
    [[nodiscard]] bool is_lost() noexcept override {
        cudaError_t state = cudaStreamQuery(nullptr);
        (void)cudaGetLastError();  // not ready: no error of whoever asks next
        return state != cudaSuccess && state != cudaErrorNotReady;
    }

    [[nodiscard]] SimulatedStep* simulated() override { return nullptr; }
    [[nodiscard]] std::unique_ptr<DeviceReader> counters() override { return nullptr; }

    // Double buffering: while a step runs, the next batch is copied.
    [[nodiscard]] int uploads_ahead() const override { return 1; }
    std::shared_ptr<SlabMemory> slab_memory() override { return pinned_; }
    Upload start_upload(Batch batch) override {
        while (!copying_.empty() && copying_.front().done->query()) copying_.pop_front();
        // The bus is behind: the batches that wait for it would fill the host's memory.
        for (; copying_.size() >= kCopiesHeld; copying_.pop_front())
            copying_.front().done->synchronize();
        // What batches of before were read by is ahead of a mark on the stream that computes.
        lent_.settle([this]() -> LentMemory::Passed {
            auto read = std::make_shared<CUDAEvent>();
            read->record(c10::cuda::getCurrentCUDAStream(index_));
            return [read] { return read->query(); };
        });
        TensorBatch there;
        auto done = std::make_shared<CUDAEvent>();
        {
            CUDAStreamGuard guard(copies_);
            for (const torch::Tensor& tensor : wrap_batch(batch))
                there.push_back(lent_.lend(tensor.to(device(), /*non_blocking=*/true)));
            done->record(copies_);
        }
        // The slab goes back to the loader when the copy has passed, not when the host is done.
        copying_.push_back({done, batch});
        return {std::move(there), done, std::move(batch)};
    }
    void await_upload(const Upload& upload) override {
        std::static_pointer_cast<CUDAEvent>(upload.done)
            ->block(c10::cuda::getCurrentCUDAStream(index_));
    }

    std::unique_ptr<Reading> start_reading(const torch::Tensor& values) override {
        return std::make_unique<LateReading>(values);
    }
    void synchronise() override { c10::cuda::getCurrentCUDAStream(index_).synchronize(); }
    std::optional<torch::Tensor> random_state() override {
        return saturate::random_state(device());
    }
    void set_random_state(const torch::Tensor& state) override {
        saturate::set_random_state(device(), state);
    }

    void mark_begin(std::int64_t step) override {
        Marks& marks = marks_[static_cast<std::size_t>(step) % marks_.size()];
        marks.step = step;
        marks.ended = false;
        marks.begin.record(c10::cuda::getCurrentCUDAStream(index_));
    }
    void mark_end(std::int64_t step) override {
        Marks& marks = marks_[static_cast<std::size_t>(step) % marks_.size()];
        marks.end.record(c10::cuda::getCurrentCUDAStream(index_));
        marks.ended = true;
    }
    std::optional<std::int64_t> step_ns(std::int64_t step) override {
        Marks& marks = marks_[static_cast<std::size_t>(step) % marks_.size()];
        if (marks.step != step || !marks.ended || !marks.end.query()) return std::nullopt;
        return static_cast<std::int64_t>(marks.begin.elapsed_time(marks.end) * 1e6);
    }

    [[nodiscard]] DeviceMemory memory() const override {
        auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(index_);
        const auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
        return {.used_bytes = static_cast<std::uint64_t>(stats.allocated_bytes[all].current),
                .peak_bytes = static_cast<std::uint64_t>(stats.allocated_bytes[all].peak),
                .reserved_bytes = static_cast<std::uint64_t>(stats.reserved_bytes[all].current)};
    }
    void reset_peak() override { c10::cuda::CUDACachingAllocator::resetPeakStats(index_); }
    // Memory ran out: now waiting is worth it.
    void release_cached() override {
        synchronise();
        lent_.free_all();
        c10::cuda::CUDACachingAllocator::emptyCache();
    }

    void run_beside(const std::function<void()>& work) override {
        CUDAStreamGuard guard(copies_);
        work();
        copies_.synchronize();
    }

    void run_apart(const std::function<void()>& work) override {
        in_turn([&] { work(); });
    }
    std::unique_ptr<CapturedStep> capture(const std::function<void()>& work) override {
        auto out = std::make_unique<Graph>();
        in_turn([&] {
            apart_.synchronize();  // once per run: nothing may be under way
            c10::cuda::CUDACachingAllocator::emptyCache();
            out->graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
            try {
                work();
            } catch (...) {
                try {
                    out->graph.capture_end();  // leaves the stream usable
                } catch (const std::exception&) {
                    // the capture was broken already
                }
                throw;
            }
            out->graph.capture_end();
        });
        return out;
    }

  private:
    struct Marks {
        std::int64_t step = -1;
        bool ended = false;
        CUDAEvent begin, end;
    };
    struct Copying {
        std::shared_ptr<CUDAEvent> done;
        Batch batch;
    };

    // On the stream apart, behind what was asked for before and before what comes after.
    void in_turn(const std::function<void()>& work) {
        CUDAStream now = c10::cuda::getCurrentCUDAStream(index_);
        CUDAEvent before;
        before.record(now);
        before.block(apart_);
        // Also when `work` throws: memory that it freed is used again on the stream that goes on.
        struct Rejoin {
            ~Rejoin() {
                try {
                    CUDAEvent after;
                    after.record(apart);
                    after.block(now);
                } catch (const std::exception&) {
                    // the device is lost: what goes on will say so
                }
            }
            CUDAStream apart, now;
        } rejoin{apart_, now};
        CUDAStreamGuard guard(apart_);
        work();
    }

    c10::DeviceIndex index_;
    CUDAStream copies_, apart_;
    std::shared_ptr<SlabMemory> pinned_;
    std::array<Marks, 512> marks_;
    std::deque<Copying> copying_;
    LentMemory lent_;
};

int device_count() { return c10::cuda::device_count(); }

std::unique_ptr<DeviceBackend> open(int index, const DeviceOptions& options) {
    at::globalContext().lazyInitDevice(torch::kCUDA);
    return std::make_unique<CudaBackend>(index, options);
}

std::vector<SelftestItem> selftest() {
    std::vector<SelftestItem> items = cuda_selftest_items();
    items.push_back({"sums and broadcasts over NCCL", check_collectives});
    return items;
}

std::string versions() {
    int runtime = 0, driver = 0;
    (void)cudaRuntimeGetVersion(&runtime);
    (void)cudaDriverGetVersion(&driver);
    auto text = [](int version) {
        return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    };
    return "CUDA " + text(runtime) + ", driver for CUDA " + text(driver) + ", NCCL " +
           nccl_version();
}

}  // namespace

extern "C" const CudaPlugin* saturate_cuda_plugin() {
    static const CudaPlugin kPlugin{.device_count = device_count,
                                    .open = open,
                                    .collectives = open_nccl,
                                    .selftest = selftest,
                                    .versions = versions};
    return &kPlugin;
}

}  // namespace saturate
