// SPDX-License-Identifier: Apache-2.0
// What a known kind of model costs per sample, estimated from the settings that shape it. Only for
// models whose shape the file tells; an estimate says how full a GPU gets, never how fast it is.
#pragma once

#include <optional>
#include <string>

#include "config/settings.h"
#include "probe/gpu_table.h"

namespace saturate {

// The shape-giving settings; `optimize --level model` changes them before it estimates.
struct ModelShape {
    std::string kind;  // restoration, locator, classifier, sequence, window_cnn
    double base_channels = 0, num_blocks = 0, patch_size = 0;
    double image_width = 0, image_height = 0;
    double hidden_size = 0, num_layers = 0, num_features = 0, sequence_length = 0, window_size = 0;
    bool use_perceptual = false;

    [[nodiscard]] bool is_convolutional() const { return kind != "sequence"; }
    // The largest batch in use for such a model: what an estimate alone does not go beyond.
    [[nodiscard]] double usual_batch_max() const;
};

// By the job's name in our files, by the keys that only one kind has in others'; nothing when
// unclear.
[[nodiscard]] std::optional<ModelShape> shape_of(const Settings& settings);

struct Workload {
    double forward_flops = 0;        // per sample
    double activation_elements = 0;  // per sample, kept for the backward pass
    double kernels = 0;              // per step: forward, backward and optimizer, not compiled
    double parameters = 0;
};
[[nodiscard]] Workload estimate(const ModelShape& shape);

struct BatchEstimate {
    double fills = 0;         // the batch from which the step's fixed cost is under a tenth of it
    double fits = 0;          // the largest batch in 80 % of the memory
    double sample_bytes = 0;  // memory per sample
};
[[nodiscard]] BatchEstimate estimate_batch(const Workload& workload, const GpuFacts& gpu,
                                           Precision precision, bool compiled);

}  // namespace saturate
