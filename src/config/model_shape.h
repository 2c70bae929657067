// SPDX-License-Identifier: Apache-2.0
// The shape of a model, as settings describe it, and the cost of a sample. Each row of
// reference_jobs.h estimates the cost from the shape.
#pragma once

#include <string>

namespace saturate {

// The settings that make up the shape. `optimize --level model` changes them before it estimates.
struct ModelShape {
    std::string kind;  // a job of reference_jobs.h
    double base_channels = 0, num_blocks = 0, patch_size = 0;
    double image_width = 0, image_height = 0;
    double hidden_size = 0, num_layers = 0, num_features = 0, sequence_length = 0, window_size = 0;
    bool use_perceptual = false;
    bool has_convolutions = false;
    double usual_batch_max = 0;  // largest usual batch: an estimate alone goes no further
};

struct Workload {
    double forward_flops = 0;        // per sample
    double activation_elements = 0;  // per sample, kept for the backward pass
    double kernels = 0;              // per step: forward, backward, optimizer; not compiled
    double parameters = 0;
};

}  // namespace saturate
