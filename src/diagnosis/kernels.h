// SPDX-License-Identifier: Apache-2.0
// What a kernel does, seen from its name. Small tables of patterns, tried once per distinct name.
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
    matrix_half,    // half precision, off or on the tensor cores is not said
    matrix,         // the name does not say the precision
    attention,      // fused attention
    softmax,
    layout,     // NCHW <-> NHWC
    optimizer,  // multi-tensor or fused optimizer
    norm,
    copy,  // element-wise copy or concatenation
    fill,
    elementwise,
    reduction,
    index,     // sort, gather, scatter: not element by element
    compiled,  // made by torch.compile, fused already
};

[[nodiscard]] KernelClass classify_kernel(std::string_view name);
[[nodiscard]] bool is_matrix(KernelClass kind);
// Reads and writes each element once or twice: neighbours of this kind can be fused.
[[nodiscard]] bool is_fusible(KernelClass kind);

// Calls of the runtime.
[[nodiscard]] bool is_synchronising(std::string_view call);  // waits for the GPU by itself
[[nodiscard]] bool is_allocating(std::string_view call);     // cudaMalloc, cudaFree and relatives
[[nodiscard]] bool is_graph_launch(std::string_view call);
[[nodiscard]] bool is_launch(std::string_view call);  // of a kernel, copy or set
[[nodiscard]] bool is_module_load(std::string_view call);

// The class of each name, looked up once.
class KernelClasses {
  public:
    explicit KernelClasses(const Trace& trace) : trace_(trace), known_(trace.names.size(), 255) {}
    [[nodiscard]] KernelClass of(const Event& event);

  private:
    const Trace& trace_;
    std::vector<std::uint8_t> known_;
};

}  // namespace saturate
