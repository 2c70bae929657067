// SPDX-License-Identifier: Apache-2.0
// Classifies kernels and runtime calls by name, with small tables of patterns.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "diagnosis/trace.h"

namespace saturate {

enum class KernelClass : std::uint8_t {
    other,
    communication,
    matrix_fp32,    // matrix product or convolution in full FP32, off the tensor cores
    matrix_tensor,  // on the tensor cores, any precision
    matrix_half,    // half precision; the name does not say whether on tensor cores
    matrix,         // precision unknown from the name
    attention,      // fused attention
    softmax,
    layout,     // NCHW <-> NHWC
    optimizer,  // multi-tensor or fused optimizer
    norm,
    copy,  // element-wise copy or concatenation
    fill,
    elementwise,
    reduction,
    index,     // sort, gather, scatter: not element-wise
    compiled,  // made by torch.compile, already fused
};

[[nodiscard]] KernelClass classify_kernel(std::string_view name);
[[nodiscard]] bool is_matrix(KernelClass kind);
// True if the kernel reads and writes each element once or twice. Neighbouring kernels of such a
// class can be fused.
[[nodiscard]] bool is_fusible(KernelClass kind);

// Classify calls of the CUDA or HIP runtime.
[[nodiscard]] bool is_synchronising(std::string_view call);  // always waits for the GPU
[[nodiscard]] bool is_allocating(std::string_view call);     // cudaMalloc, cudaFree and relatives
[[nodiscard]] bool is_graph_launch(std::string_view call);
[[nodiscard]] bool is_launch(std::string_view call);  // launches a kernel, copy or set
[[nodiscard]] bool is_module_load(std::string_view call);

// Caches the class of each kernel name, so that the patterns are tried once per distinct name.
class KernelClasses {
  public:
    explicit KernelClasses(const Trace& trace) : trace_(trace), known_(trace.names.size(), 255) {}
    [[nodiscard]] KernelClass of(const Event& event);

  private:
    const Trace& trace_;
    std::vector<std::uint8_t> known_;
};

}  // namespace saturate
