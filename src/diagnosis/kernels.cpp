// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/kernels.h"

#include <string>

#include "base/text.h"

namespace saturate {
namespace {

struct KernelPattern {
    std::string_view text;  // lower case
    KernelClass kind;
};

// The first pattern found in the lower-case name decides.
constexpr KernelPattern kPatterns[] = {
    {"nccl", KernelClass::communication},
    {"rccl", KernelClass::communication},
    {"c10d", KernelClass::communication},
    {"all_reduce", KernelClass::communication},
    {"allreduce", KernelClass::communication},
    {"all_gather", KernelClass::communication},
    {"reduce_scatter", KernelClass::communication},
    {"sendrecv", KernelClass::communication},
    {"cross_device_reduce", KernelClass::communication},
    {"multimem", KernelClass::communication},
    {"internode", KernelClass::communication},
    {"intranode", KernelClass::communication},
    {"triton_", KernelClass::compiled},
    {"nchwtonhwc", KernelClass::layout},
    {"nhwctonchw", KernelClass::layout},
    {"nchw2nhwc", KernelClass::layout},
    {"nhwc2nchw", KernelClass::layout},
    {"batched_transpose", KernelClass::layout},
    {"flash", KernelClass::attention},
    {"fmha", KernelClass::attention},
    {"multi_tensor_apply", KernelClass::optimizer},
    {"fused_adam", KernelClass::optimizer},
    {"fusedadam", KernelClass::optimizer},
    {"softmax", KernelClass::softmax},
    {"batch_norm", KernelClass::norm},
    {"bn_fw", KernelClass::norm},
    {"bn_bw", KernelClass::norm},
    {"layer_norm", KernelClass::norm},
    {"batchnorm", KernelClass::norm},
    {"layernorm", KernelClass::norm},
    {"rmsnorm", KernelClass::norm},
    {"rms_norm", KernelClass::norm},
    {"group_norm", KernelClass::norm},
    {"groupnorm", KernelClass::norm},
    {"rowwisemoments", KernelClass::norm},
    {"gammabeta", KernelClass::norm},
    {"tensorop", KernelClass::matrix_tensor},
    {"tf32", KernelClass::matrix_tensor},
    {"884gemm", KernelClass::matrix_tensor},
    {"1688", KernelClass::matrix_tensor},
    {"16816", KernelClass::matrix_tensor},
    {"h884", KernelClass::matrix_tensor},
    {"s884", KernelClass::matrix_tensor},
    {"bf16bf16", KernelClass::matrix_tensor},
    {"f16f16", KernelClass::matrix_tensor},
    {"wgmma", KernelClass::matrix_tensor},
    {"hmma", KernelClass::matrix_tensor},
    {"warpspecialized", KernelClass::matrix_tensor},
    {"nvjet", KernelClass::matrix_tensor},
    {"f32f32", KernelClass::matrix_fp32},
    {"sgemm", KernelClass::matrix_fp32},
    {"simt", KernelClass::matrix_fp32},
    {"scudnn", KernelClass::matrix_fp32},
    {"hgemm", KernelClass::matrix_half},
    {"fp16", KernelClass::matrix_half},
    {"gemm", KernelClass::matrix},
    {"gemv", KernelClass::matrix},
    {"winograd", KernelClass::matrix},
    {"convolve", KernelClass::matrix},
    {"dgrad", KernelClass::matrix},
    {"wgrad", KernelClass::matrix},
    {"conv2d", KernelClass::matrix},
    {"cijk_", KernelClass::matrix},
    {"fillfunctor", KernelClass::fill},
    {"copy_kernel", KernelClass::copy},
    {"catarraybatchedcopy", KernelClass::copy},
    {"index", KernelClass::index},
    {"gather", KernelClass::index},
    {"scatter", KernelClass::index},
    {"sort", KernelClass::index},
    {"embedding", KernelClass::index},
    {"elementwise", KernelClass::elementwise},
    {"reduce_kernel", KernelClass::reduction},
    {"dropout", KernelClass::elementwise},
};

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> ends) {
    for (std::string_view end : ends) {
        if (text.ends_with(end)) return true;
    }
    return false;
}

}  // namespace

KernelClass classify_kernel(std::string_view name) {
    std::string low = lower(name);
    for (const KernelPattern& pattern : kPatterns) {
        if (low.find(pattern.text) != std::string::npos) return pattern.kind;
    }
    return KernelClass::other;
}

bool is_matrix(KernelClass kind) {
    return kind == KernelClass::matrix_fp32 || kind == KernelClass::matrix_tensor ||
           kind == KernelClass::matrix_half || kind == KernelClass::matrix;
}

bool is_fusible(KernelClass kind) {
    return kind == KernelClass::elementwise || kind == KernelClass::reduction ||
           kind == KernelClass::norm || kind == KernelClass::softmax || kind == KernelClass::copy ||
           kind == KernelClass::fill;
}

bool is_synchronising(std::string_view call) {
    return ends_with_any(call,
                         {"Synchronize", "Memcpy", "MemcpyDtoH", "MemcpyHtoD", "MemcpyWithStream",
                          "MemcpyDtoD", "MemcpyPeer", "Memcpy2D", "Memcpy3D"});
}

bool is_allocating(std::string_view call) {
    if (call.ends_with("Async")) return false;
    for (std::string_view part : {"Malloc", "cudaFree", "hipFree", "HostAlloc", "hipHostMalloc",
                                  "cuMemAlloc", "cuMemFree", "HostRegister"}) {
        if (call.find(part) != std::string_view::npos) return true;
    }
    return false;
}

bool is_graph_launch(std::string_view call) { return call.find("GraphLaunch") != call.npos; }

bool is_module_load(std::string_view call) {
    return call.find("ModuleLoad") != call.npos || call.find("LibraryLoad") != call.npos;
}

bool is_launch(std::string_view call) {
    return call.find("Launch") != call.npos || call.find("Memcpy") != call.npos ||
           call.find("Memset") != call.npos;
}

KernelClass KernelClasses::of(const Event& event) {
    std::uint8_t& known = known_[event.name];
    if (known == 255) known = static_cast<std::uint8_t>(classify_kernel(trace_.name(event)));
    return static_cast<KernelClass>(known);
}

}  // namespace saturate
