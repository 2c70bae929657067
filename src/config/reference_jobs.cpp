// SPDX-License-Identifier: Apache-2.0
#include "config/reference_jobs.h"

#include <algorithm>

namespace saturate {

namespace {

Workload restoration_cost(const ModelShape& shape) {
    double patch = shape.patch_size * shape.patch_size, channels = shape.base_channels;
    double convolutions = 2 * shape.num_blocks + 2;
    Workload out{.forward_flops = patch * convolutions * 18 * channels * channels,
                 .activation_elements = patch * channels * 2 * convolutions,
                 .kernels = convolutions * 8 + 20,
                 .parameters = convolutions * 9 * channels * channels};
    if (shape.use_perceptual) {
        // VGG-16 up to its third stage, on both pictures: 185,000 products a pixel
        out.forward_flops += patch * 2 * 2 * 185e3;
        out.activation_elements += patch * 240;
        out.kernels += 7 * 2 * 4;
        out.parameters += 1.7e6;
    }
    return out;
}

// 3.5 M parameters, 0.45 GFLOP at 320 x 160; many small layers.
Workload locator_cost(const ModelShape& shape) {
    double pixels = shape.image_width * shape.image_height;
    return {.forward_flops = pixels * 8789,
            .activation_elements = pixels * 160,
            .kernels = 2700,
            .parameters = 3.5e6};
}

// A residual network of 18 layers: 3.6 GFLOP at 224 x 224.
Workload classifier_cost(const ModelShape& shape) {
    double share = shape.image_width * shape.image_height / (224.0 * 224.0);
    return {.forward_flops = 3.6e9 * share,
            .activation_elements = 7.5e6 * share,
            .kernels = 220,
            .parameters = 11.2e6};
}

Workload sequence_cost(const ModelShape& shape) {
    double gates = 4 * shape.hidden_size * (2 * shape.hidden_size + 2);
    double cells = shape.sequence_length * shape.num_layers;
    return {.forward_flops = cells * 2 * gates,
            .activation_elements = cells * shape.hidden_size * 6,
            .kernels = cells * 6 + 40,
            .parameters = shape.num_layers * gates};
}

Workload window_cnn_cost(const ModelShape& shape) {
    double cells = shape.window_size * shape.num_features, channels = shape.base_channels;
    return {.forward_flops = cells * 3 * 18 * channels * channels * 2,
            .activation_elements = cells * channels * 8,
            .kernels = 90,
            .parameters = 3 * 9 * channels * channels * 2 + cells * channels * 16};
}

std::vector<ReferenceJob> make_table() {
    using enum Setting;
    return {
        {.name = "restoration",
         .samples = JobSamples::pairs,
         .has_convolutions = true,
         .usual_batch_max = 64,
         .can_recompute = true,
         .told_by = {patch_size, base_channels},
         .grows_by = {base_channels, num_blocks, patch_size, use_perceptual},
         .estimate = restoration_cost,
         .made = {.files = MadeFiles::pairs,
                  .path = "data/restoration",
                  .samples = 300,
                  .layout = "{train,val}/{input,target}/NAME.png, 256 x 192: input is the target "
                            "halved and enlarged again, bicubic"},
         .write_up = {.gpu = "RTX 4090",
                      .fault = "no workers, a small batch, fp32, the loss read every step",
                      .busy = "20 -> 85+ %",
                      .speed_up = "3-5 times (with a larger model)",
                      .busy_least = 85,
                      .speed_up_least = 3},
         .is_shown = true},
        {.name = "locator",
         .samples = JobSamples::points,
         .picture = {.width = 320, .height = 160},
         .has_convolutions = true,
         .usual_batch_max = 512,
         .can_recompute = true,
         .told_by = {image_size},
         .told_by_numbers = 2,
         .estimate = locator_cost,
         .made = {.files = MadeFiles::points,
                  .path = "data/locator",
                  .samples = 2000,
                  .layout = "{train,val}/NAME.jpg, 320 x 160, and labels.csv: file, hole_x, "
                            "hole_y, piece_x, piece_y"},
         .write_up = {.gpu = "RTX 5090",
                      .fault = "mixed precision never in effect, 28 workers, the loss read every "
                               "step",
                      .busy = "52 -> 80-90 %",
                      .rate = "about 100 -> 200-250",
                      .power = "300 -> 450-500 W",
                      .speed_up = "1.7-2.4 times",
                      .busy_least = 80,
                      .speed_up_least = 1.7,
                      .as_run = "precision=none"}},
        {.name = "classifier",
         .samples = JobSamples::classes,
         .picture = {.width = 128, .height = 128, .channels = 1, .mean = 0.5f, .deviation = 0.25f},
         .has_convolutions = true,
         .usual_batch_max = 256,
         .can_recompute = true,
         .told_by = {image_size, num_classes},
         .estimate = classifier_cost,
         .made = {.files = MadeFiles::classes,
                  .path = "data/classifier",
                  .samples = 4000,
                  .layout = "{train,val}/CLASS/NAME.png, 128 x 128, grey"},
         .write_up = {.gpu = "RTX 3090",
                      .fault = "no workers, pageable copies, a pause after every epoch",
                      .busy = "65 +- 15 -> 92 +- 5 %",
                      .steps = "45 -> 62",
                      .wait = "120 -> 25 ms",
                      .speed_up = "1.38 times",
                      .busy_least = 87,
                      .speed_up_least = 1.38}},
        {.name = "sequence",
         .samples = JobSamples::windows,
         .can_recompute = true,
         .told_by = {hidden_size, sequence_length},
         .grows_by = {hidden_size},
         .estimate = sequence_cost,
         .made = {.files = MadeFiles::load_table,
                  .path = "data/sequence.csv",
                  .samples = 20000,
                  .layout = "hourly rows, 16 columns; the last is forecast"},
         .write_up = {.gpu = "RTX 3090",
                      .fault = "many tiny kernels, a small batch, the loss read every step",
                      .busy = "20-40 -> 70-90 %",
                      .rate = "500-1000 -> 2000-4000",
                      .speed_up = "2-4 times (with a larger model)",
                      .busy_least = 70,
                      .speed_up_least = 2}},
        {.name = "window_cnn",
         .samples = JobSamples::window_pictures,
         .has_convolutions = true,
         .can_recompute = true,
         .told_by = {window_size, num_features},
         .estimate = window_cnn_cost,
         .made = {.files = MadeFiles::air_table,
                  .path = "data/air_quality.csv",
                  .samples = 20000,
                  .layout = "hourly rows, 16 columns; the last is forecast"},
         .write_up = {.gpu = "RTX 5090",
                      .fault = "a batch of 32 on a card that holds hundreds, fp32 without TF32",
                      .busy = "20-30 -> 80-95 %",
                      .speed_up = "3-6 times",
                      .busy_least = 80,
                      .speed_up_least = 3}},
        {.name = "tiny_mlp", .samples = JobSamples::made},
        {.name = "torchscript", .samples = JobSamples::as_they_are, .has_convolutions = true},
    };
}

}  // namespace

std::span<const ReferenceJob> reference_job_table() {
    static const std::vector<ReferenceJob> kTable = make_table();
    return kTable;
}

const ReferenceJob& shown_job() {
    return *std::ranges::find_if(reference_job_table(), &ReferenceJob::is_shown);
}

std::string written_up_jobs(std::string_view between) {
    std::string out;
    for (const ReferenceJob& job : reference_job_table()) {
        if (job.write_up.gpu.empty()) continue;
        if (!out.empty()) out += between;
        out += job.name;
    }
    return out;
}

const ReferenceJob* find_reference_job(std::string_view name) {
    auto found = std::ranges::find(reference_job_table(), name, &ReferenceJob::name);
    return found == reference_job_table().end() ? nullptr : &*found;
}

}  // namespace saturate
