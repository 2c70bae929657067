// SPDX-License-Identifier: Apache-2.0
// Environment variables for LibTorch's NCCL, set before its process group is created.
#pragma once

namespace saturate {

// Detecting and surviving a lost rank is our job (rank_watch.h). LibTorch's own watchdog and
// monitor would end this process because of a lost rank or a device error, before the checkpoint is
// saved and the summary written. TORCH_NCCL_BLOCKING_WAIT, which job scripts often set, would make
// the host wait inside a collective, where it cannot notice a lost rank.
void leave_nccl_errors_to_us();

}  // namespace saturate
