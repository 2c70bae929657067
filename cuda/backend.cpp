// SPDX-License-Identifier: Apache-2.0
// A GPU as the trainer's device: adds what needs CUDA's libraries to the common part of all devices
// with streams (src/engine/stream_backend.h). Part of libsaturate_cuda.so.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime_api.h>

#include "cuda/collectives.h"
#include "cuda/selftest.h"
#include "engine/stream_backend.h"

namespace saturate {

namespace {

class Graph final : public CapturedStep {
  public:
    void replay() override { graph.replay(); }
    at::cuda::CUDAGraph graph;
};

void* allocate_pinned(std::size_t bytes) {
    void* memory = nullptr;
    if (cudaHostAlloc(&memory, bytes, cudaHostAllocDefault) == cudaSuccess) return memory;
    (void)cudaGetLastError();
    return nullptr;
}
void release_pinned(void* memory) { (void)cudaFreeHost(memory); }

class CudaBackend final : public StreamBackend {
  public:
    CudaBackend(torch::Device device, const DeviceOptions& options)
        : StreamBackend(device,
                        std::make_shared<PinnedMemory>(
                            device, PinnedMemory::Calls{allocate_pinned, release_pinned}),
                        options.pin_memory),
          device_(device) {
        at::Context& context = at::globalContext();
        use_tf32(options.tf32);
        context.setBenchmarkCuDNN(options.cudnn_benchmark && !options.deterministic);
        context.setDeterministicAlgorithms(options.deterministic, true);
        if (options.threads > 0) at::set_num_threads(options.threads);
    }
    ~CudaBackend() override {
        if (CudaBackend::is_lost()) abandon();
    }

    [[nodiscard]] torch::Device device() const override { return device_; }
    [[nodiscard]] std::string name() const override {
        return device_.str() + " (" + at::cuda::getDeviceProperties(index())->name + ")";
    }
    [[nodiscard]] bool has_bf16() const override {
        return at::cuda::getDeviceProperties(index())->major >= 8;
    }
    [[nodiscard]] std::string pci_bus_id() const override {
        char text[32] = {};
        if (cudaDeviceGetPCIBusId(text, sizeof text, index()) == cudaSuccess) return text;
        (void)cudaGetLastError();
        return "";
    }

    // Events measure the span of a step; only a profiler tells how long kernels ran in it.
    [[nodiscard]] DeviceProof proves() const override { return {.capture = true}; }
    [[nodiscard]] bool is_lost() noexcept override {
        cudaError_t state = cudaStreamQuery(nullptr);
        (void)cudaGetLastError();  // clears "not ready", which is not the next caller's error
        return state != cudaSuccess && state != cudaErrorNotReady;
    }

    [[nodiscard]] DeviceMemory memory() const override {
        auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(index());
        const auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
        return {.used_bytes = static_cast<std::uint64_t>(stats.allocated_bytes[all].current),
                .peak_bytes = static_cast<std::uint64_t>(stats.allocated_bytes[all].peak),
                .reserved_bytes = static_cast<std::uint64_t>(stats.reserved_bytes[all].current)};
    }
    void reset_peak() override { c10::cuda::CUDACachingAllocator::resetPeakStats(index()); }

    std::unique_ptr<CapturedStep> capture(const std::function<void()>& work) override {
        auto out = std::make_unique<Graph>();
        in_turn([&] {
            apart().synchronize();  // once per run: nothing may be in progress
            empty_cache();
            out->graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
            try {
                work();
            } catch (...) {
                try {
                    out->graph.capture_end();  // keeps the stream usable
                } catch (const std::exception&) {
                    // The capture was already broken.
                }
                throw;
            }
            out->graph.capture_end();
        });
        return out;
    }

  private:
    void empty_cache() override { c10::cuda::CUDACachingAllocator::emptyCache(); }
    [[nodiscard]] c10::DeviceIndex index() const { return device_.index(); }

    torch::Device device_;
};

int device_count() { return c10::cuda::device_count(); }

std::unique_ptr<DeviceBackend> open(int index, const DeviceOptions& options) {
    at::globalContext().lazyInitDevice(torch::kCUDA);
    return std::make_unique<CudaBackend>(
        torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(index)), options);
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
