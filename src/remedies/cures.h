// SPDX-License-Identifier: Apache-2.0
// The functions of the catalogue's rows: facts in, proposal out. Pure; only for catalogue.cpp.
#pragma once

#include "remedies/catalogue.h"

namespace saturate {

// cures_loader.cpp
Proposal cure_num_workers(const Facts& facts);
Proposal cure_persistent_workers(const Facts& facts);
Proposal cure_prefetch_factor(const Facts& facts);
Proposal cure_batched_fetch(const Facts& facts);
Proposal cure_cache(const Facts& facts);
Proposal cure_pin_memory(const Facts& facts);
Proposal cure_non_blocking(const Facts& facts);

// cures_device.cpp
Proposal cure_precision(const Facts& facts);
Proposal cure_tf32(const Facts& facts);
Proposal cure_channels_last(const Facts& facts);
Proposal cure_cudnn_benchmark(const Facts& facts);
Proposal cure_compile(const Facts& facts);
Proposal cure_fused_optimizer(const Facts& facts);
Proposal cure_foreach(const Facts& facts);
Proposal cure_set_to_none(const Facts& facts);
Proposal cure_gradient_checkpointing(const Facts& facts);
Proposal cure_threads(const Facts& facts);
Proposal cure_attention(const Facts& facts);
Proposal cure_expandable_segments(const Facts& facts);
Proposal cure_bucket_size(const Facts& facts);
Proposal cure_gradient_compression(const Facts& facts);

// cures_training.cpp
Proposal cure_batch_size(const Facts& facts);
Proposal cure_accumulation(const Facts& facts);
Proposal cure_learning_rate(const Facts& facts);
Proposal cure_grad_clip(const Facts& facts);
Proposal cure_log_interval(const Facts& facts);
Proposal cure_eval_interval(const Facts& facts);
Proposal cure_checkpoint_interval(const Facts& facts);
Proposal grow_base_channels(const Facts& facts);
Proposal grow_num_blocks(const Facts& facts);
Proposal grow_patch_size(const Facts& facts);
Proposal grow_hidden_size(const Facts& facts);
Proposal grow_use_perceptual(const Facts& facts);

}  // namespace saturate
