// SPDX-License-Identifier: Apache-2.0
// Translates names of Nsight Systems into those of PyTorch's profiler, which the rules know. Pure
// functions, used by trace_nsys.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace saturate {

// The parts of a text that PyTorch's emit_nvtx writes, such as
// "aten::mm, seq = 4, op_id = 9, sizes = [[2,3],[3,4]]".
struct NvtxText {
    std::string_view name;
    std::string_view dims = {};  // empty if not recorded
    bool is_op = false;
};
[[nodiscard]] NvtxText split_nvtx(std::string_view text);

// Returns the number of a range that marks a step ("iteration 12", "train_step_3"), or nullopt.
[[nodiscard]] std::optional<std::int64_t> step_number(std::string_view range);

// Returns "Memcpy HtoD (Pageable -> Device)" for CUPTI's numbers of copy and memory kinds.
[[nodiscard]] std::string copy_name(std::int64_t copy, std::int64_t from, std::int64_t to);

// Turns "cudaMemcpyAsync_v3020" into "cudaMemcpyAsync".
[[nodiscard]] std::string_view without_version(std::string_view call);

}  // namespace saturate
