// SPDX-License-Identifier: Apache-2.0
// What Nsight Systems writes, in the words of PyTorch's profiler, which the rules know. Pure
// functions, used by the reader of its exports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace saturate {

// What PyTorch's emit_nvtx writes, "aten::mm, seq = 4, op_id = 9, sizes = [[2,3],[3,4]]", in parts.
struct NvtxText {
    std::string_view name;
    std::string_view dims = {};  // empty: not recorded
    bool is_op = false;
};
[[nodiscard]] NvtxText split_nvtx(std::string_view text);

// The number of a range that marks a step ("iteration 12", "train_step_3"); nothing for others.
[[nodiscard]] std::optional<std::int64_t> step_number(std::string_view range);

// "Memcpy HtoD (Pageable -> Device)" for CUPTI's numbers of copy and memory kinds.
[[nodiscard]] std::string copy_name(std::int64_t copy, std::int64_t from, std::int64_t to);

// "cudaMemcpyAsync_v3020" to "cudaMemcpyAsync".
[[nodiscard]] std::string_view without_version(std::string_view call);

}  // namespace saturate
