// SPDX-License-Identifier: Apache-2.0
// A part of a flat tensor in the shape and layout of another tensor.
#pragma once

#include <torch/types.h>

namespace saturate {

// With the strides of `like` if its elements fill its memory: fused operators then go through both
// in the same order.
[[nodiscard]] inline torch::Tensor view_like(const torch::Tensor& flat, std::int64_t offset,
                                             const torch::Tensor& like) {
    torch::Tensor part = flat.narrow(0, offset, like.numel());
    return like.is_non_overlapping_and_dense()
               ? part.as_strided(like.sizes(), like.strides(), part.storage_offset())
               : part.view(like.sizes());
}

}  // namespace saturate
