// SPDX-License-Identifier: Apache-2.0
// Checks the basics of every CUDA path against the CPU: pinned memory, copies on a side stream, a
// kernel of LibTorch (which must have code for this GPU), a captured graph. Built into
// libsaturate_cuda.so, called by src/engine/selftest_cuda.cpp. It has no kernel of its own, so nvcc
// is not needed.
#include "cuda/selftest.h"

#include <ATen/ATen.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace saturate {
namespace {

constexpr int kCount = 1 << 20;

void check(cudaError_t status, const char* call) {
    if (status != cudaSuccess)
        throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(status));
}
#define CUDA(call) check(call, #call)

float* allocate_pinned() {
    void* memory = nullptr;
    CUDA(cudaMallocHost(&memory, kCount * sizeof(float)));
    return static_cast<float*>(memory);
}

float* allocate_on_device() {
    void* memory = nullptr;
    CUDA(cudaMalloc(&memory, kCount * sizeof(float)));
    return static_cast<float*>(memory);
}

// The buffers for one run of the checks.
struct Buffers {
    float* host_in = nullptr;  // pinned
    float* host_out = nullptr;
    float* in = nullptr;
    float* out = nullptr;
    cudaStream_t stream = nullptr;

    Buffers() {
        host_in = allocate_pinned();
        host_out = allocate_pinned();
        in = allocate_on_device();
        out = allocate_on_device();
        CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        for (int i = 0; i < kCount; ++i) host_in[i] = static_cast<float>(i % 1000) / 8;
    }
    ~Buffers() {
        cudaStreamDestroy(stream);
        cudaFree(out);
        cudaFree(in);
        cudaFreeHost(host_out);
        cudaFreeHost(host_in);
    }

    void copy_in() {
        CUDA(cudaMemcpyAsync(in, host_in, kCount * sizeof(float), cudaMemcpyHostToDevice, stream));
    }
    void copy_out(const float* from) {
        CUDA(cudaMemcpyAsync(host_out, from, kCount * sizeof(float), cudaMemcpyDeviceToHost,
                             stream));
    }
    void clear() { CUDA(cudaMemsetAsync(out, 0, kCount * sizeof(float), stream)); }
    // out += 2 * in, in place: allocates nothing, so it can be captured.
    void launch() {
        c10::DeviceIndex device = c10::cuda::current_device();
        auto options = at::TensorOptions().device(at::kCUDA, device).dtype(at::kFloat);
        c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromExternal(stream, device));
        at::from_blob(out, {kCount}, options).add_(at::from_blob(in, {kCount}, options), 2.0);
        CUDA(cudaGetLastError());
    }
    void wait() { CUDA(cudaStreamSynchronize(stream)); }

    // Eighths below 1000 times small integers are exact in float, so no difference is allowed.
    SelftestCheck compare(float factor) {
        wait();
        double error = 0;
        for (int i = 0; i < kCount; ++i)
            error = std::fmax(error, std::fabs(host_out[i] - factor * host_in[i]));
        return {"", error == 0, "largest difference " + std::to_string(error) + ", allowed 0"};
    }
};

SelftestCheck check_copies(Buffers& b) {
    b.copy_in();
    b.copy_out(b.in);
    return b.compare(1);
}

SelftestCheck check_kernel(Buffers& b) {
    b.copy_in();
    b.clear();
    b.launch();
    b.copy_out(b.out);
    return b.compare(2);
}

SelftestCheck check_graph(Buffers& b) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    b.clear();
    CUDA(cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal));
    b.copy_in();
    b.launch();
    CUDA(cudaStreamEndCapture(b.stream, &graph));
    CUDA(cudaGraphInstantiate(&replay, graph, 0));
    for (int i = 0; i < 3; ++i) CUDA(cudaGraphLaunch(replay, b.stream));
    b.copy_out(b.out);
    SelftestCheck done = b.compare(6);
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
    return done;
}

}  // namespace

std::vector<SelftestItem> cuda_selftest_items() {
    // Created by the first check: without a usable GPU every check fails with the reason.
    auto buffers = std::make_shared<std::unique_ptr<Buffers>>();
    auto item = [&](const char* name, SelftestCheck (*check)(Buffers&)) {
        return SelftestItem{name, [buffers, check] {
                                if (!*buffers) *buffers = std::make_unique<Buffers>();
                                return check(**buffers);
                            }};
    };
    return {item("pinned copies there and back on a side stream", check_copies),
            item("a kernel against the CPU", check_kernel),
            item("a captured graph replayed three times", check_graph)};
}

}  // namespace saturate
