// SPDX-License-Identifier: Apache-2.0
#include "config/schema.h"

#include <array>

#include "base/error.h"

namespace saturate {

namespace {

using enum Setting;
using enum Level;

// In the order of the enum; info_of() relies on it and a test checks it.
constexpr SettingInfo kSchema[] = {
    {batch_size, "batch_size", Kind::whole, 1, 1e7, "32", training, "samples per step and process"},
    {global_batch_size, "global_batch_size", Kind::whole, 1, 1e9, "", training,
     "samples per optimizer step over all processes"},
    {eval_batch_size, "eval_batch_size", Kind::whole, 1, 1e7, "", safe,
     "samples per evaluation step"},
    {gradient_accumulation_steps, "gradient_accumulation_steps", Kind::whole, 1, 1e6, "1", numerics,
     "steps whose gradients are added before one optimizer step"},
    {num_workers, "num_workers", Kind::whole, 0, 1024, "auto", safe,
     "loader workers per process; auto follows the measured wait"},
    {prefetch_factor, "prefetch_factor", Kind::whole, 1, 1024, "2", safe,
     "batches that each worker keeps ready"},
    {pin_memory, "pin_memory", Kind::flag, 0, 0, "true", safe,
     "batches in page-locked memory, so that copies to the GPU are asynchronous"},
    {persistent_workers, "persistent_workers", Kind::flag, 0, 0, "true", safe,
     "workers stay alive between epochs"},
    {non_blocking, "non_blocking", Kind::flag, 0, 0, "true", safe,
     "copies to the GPU do not hold up the host"},
    {cache, "cache", Kind::word, 0, 0, "off", safe, "decoded samples kept: off, ram or disk"},
    {precision, "precision", Kind::precision, 0, 0, "auto", numerics,
     "true, bf16, fp16, none or off; true means the best that the device supports"},
    {tf32, "tf32", Kind::flag, 0, 0, "true", numerics,
     "matrix products of fp32 tensors in TF32 on tensor cores"},
    {channels_last, "channels_last", Kind::flag, 0, 0, "false", numerics,
     "image tensors stored pixel by pixel (NHWC)"},
    {compile, "compile", Kind::compile, 0, 0, "false", numerics,
     "true, default, reduce-overhead, max-autotune or off"},
    {compile_mode, "compile_mode", Kind::word, 0, 0, "default", numerics,
     "how hard the compiler tries"},
    {cudnn_benchmark, "cudnn_benchmark", Kind::flag, 0, 0, "true", numerics,
     "convolution algorithms chosen by timing; for constant shapes"},
    {deterministic, "deterministic", Kind::flag, 0, 0, "false", numerics,
     "only algorithms that repeat exactly"},
    {fused_optimizer, "fused_optimizer", Kind::flag, 0, 0, "true", numerics,
     "one kernel updates all parameters"},
    {set_to_none, "set_to_none", Kind::flag, 0, 0, "true", safe,
     "gradients are dropped rather than filled with zeros"},
    {gradient_checkpointing, "gradient_checkpointing", Kind::flag, 0, 0, "false", numerics,
     "activations computed again instead of kept: less memory, a third more work"},
    {optimizer, "optimizer", Kind::word, 0, 0, "adamw", training, "adamw, adam or sgd"},
    {learning_rate, "learning_rate", Kind::number, 1e-12, 1e3, "", training,
     "the highest learning rate of the schedule"},
    {grad_clip, "grad_clip", Kind::number, 0, 1e9, "", training,
     "largest gradient norm; larger gradients are scaled down to it, 0 is off"},
    {epochs, "epochs", Kind::whole, 0, 1e7, "", training, "passes over the training data"},
    {log_interval, "log_interval", Kind::whole, 1, 1e9, "50", safe,
     "steps between two readings of the loss"},
    {eval_interval, "eval_interval", Kind::whole, 0, 1e9, "1", training,
     "epochs between two evaluations"},
    {checkpoint_interval, "checkpoint_interval", Kind::whole, 0, 1e9, "1", training,
     "epochs between two checkpoints"},
    {dataset_size, "dataset_size", Kind::whole, 1, 1e13, "", safe,
     "number of training samples, if the data itself does not show it"},
    {seed, "seed", Kind::whole, 0, 9e15, "0", training, "seed of all random numbers"},
    {weight_decay, "weight_decay", Kind::number, 0, 1, "", training,
     "pulls the weights towards zero; by default 0.01 for adamw, otherwise 0"},
    {momentum, "momentum", Kind::number, 0, 1, "0.9", training, "momentum of sgd"},
    {schedule, "schedule", Kind::word, 0, 0, "constant", training,
     "how the learning rate changes after the warm-up: constant, cosine or step"},
    {warmup_steps, "warmup_steps", Kind::whole, 0, 1e9, "0", training,
     "steps over which the learning rate rises from zero"},
    {learning_rate_min, "learning_rate_min", Kind::number, 0, 1e3, "0", training,
     "learning rate at the end of the schedule"},
    {schedule_step, "schedule_step", Kind::whole, 1, 1e7, "30", training,
     "epochs between two drops of the schedule step"},
    {schedule_factor, "schedule_factor", Kind::number, 1e-6, 1, "0.1", training,
     "factor of the learning rate at each drop of the schedule step"},
    {ema, "ema", Kind::number, 0, 0.999999, "0", training,
     "decay of a moving average of the weights, which is evaluated and saved; 0 is off"},
    {early_stopping, "early_stopping", Kind::whole, 0, 1e6, "0", training,
     "evaluations without a better metric after which training ends; 0 is off"},
    {eval_steps, "eval_steps", Kind::whole, 0, 1e9, "0", training,
     "steps between two evaluations, in addition to those after epochs; 0 is off"},
    {checkpoint_steps, "checkpoint_steps", Kind::whole, 0, 1e9, "0", training,
     "steps between two checkpoints, in addition to those after epochs; 0 is off"},
    {checkpoint_keep, "checkpoint_keep", Kind::whole, 1, 1e6, "3", safe,
     "how many of the newest checkpoints to keep, besides the best one"},
    {bad_samples_max, "bad_samples_max", Kind::whole, 0, 1e9, "100", training,
     "broken samples that are skipped before the run ends"},
    {window_stride, "window_stride", Kind::whole, 1, 1e8, "1", Level::model,
     "rows between the starts of two windows of a table"},
    {window_horizon, "window_horizon", Kind::whole, 1, 1e8, "1", Level::model,
     "rows from the end of a window to the row to forecast"},
    {target_column, "target_column", Kind::word, 0, 0, "", Level::model,
     "column of a table to forecast, by name or number; by default the last"},
    {threads, "threads", Kind::whole, 1, 4096, "auto", numerics,
     "threads that compute on the CPU; auto is the cores this process may use"},
    {memory_limit, "memory_limit", Kind::number, 0.001, 1e6, "", safe,
     "GiB of tensors on the CPU, beyond which the micro-batch is halved"},
    {rank_timeout, "rank_timeout", Kind::number, 1, 1e6, "300", safe,
     "seconds to wait for a rank that is alive but does not arrive"},
    {gradient_compression, "gradient_compression", Kind::word, 0, 0, "none", numerics,
     "compression of the gradients sent between ranks: none or bf16"},
    {bucket_size, "bucket_size", Kind::number, 0.001, 4096, "4", numerics,
     "MiB of gradients that are sent at once between ranks"},
    {check_ranks, "check_ranks", Kind::whole, 0, 1e9, "0", safe,
     "steps between two comparisons of the ranks' weights; 0: at the start only"},
    {job, "job", Kind::word, 0, 0, "", Level::model,
     "what to train: a reference job, or one that your own program registers"},
    {data, "data", Kind::word, 0, 0, "", Level::model, "folder or file of the training data"},
    {model_file, "model_file", Kind::word, 0, 0, "", Level::model,
     "TorchScript file of your own model, for the job torchscript"},
    {base_channels, "base_channels", Kind::whole, 1, 65536, "", Level::model,
     "channels of the first layer"},
    {num_blocks, "num_blocks", Kind::whole, 1, 4096, "", Level::model, "residual blocks"},
    {patch_size, "patch_size", Kind::whole, 1, 65536, "", Level::model,
     "side of the square patch cut from an image, in pixels"},
    {image_size, "image_size", Kind::size, 1, 65536, "", Level::model,
     "side of an image in pixels, or [width, height]"},
    {hidden_size, "hidden_size", Kind::whole, 1, 1e6, "", Level::model,
     "width of the recurrent layers"},
    {num_layers, "num_layers", Kind::whole, 1, 10000, "", Level::model, "layers"},
    {cell, "cell", Kind::word, 0, 0, "lstm", Level::model, "recurrent layers: lstm or gru"},
    {num_features, "num_features", Kind::whole, 1, 1e7, "", Level::model,
     "columns of a table that are used"},
    {num_classes, "num_classes", Kind::whole, 1, 1e8, "", Level::model, "number of classes"},
    {sequence_length, "sequence_length", Kind::size, 1, 1e8, "", Level::model,
     "steps in a sequence"},
    {window_size, "window_size", Kind::whole, 1, 1e8, "", Level::model, "rows in a window"},
    {use_perceptual, "use_perceptual", Kind::flag, 0, 0, "false", Level::model,
     "a second network judges the image; costs its forward pass"},
};

}  // namespace

std::string_view level_name(Level level) {
    constexpr std::string_view kNames[] = {"safe", "numerics", "training", "model"};
    return kNames[static_cast<int>(level)];
}

Level level_named(std::string_view name) {
    auto level = Level::safe;
    while (level_name(level) != name) {
        SATURATE_CHECK(level != Level::model, "the choices of --level are the levels");
        level = static_cast<Level>(static_cast<int>(level) + 1);
    }
    return level;
}

std::span<const SettingInfo> schema() { return kSchema; }

const SettingInfo& info_of(Setting setting) {
    const SettingInfo& info = kSchema[static_cast<std::size_t>(setting)];
    SATURATE_CHECK(info.id == setting, "the schema is in the order of the enum");
    return info;
}

bool is_for_train_only(Setting setting) {
    return setting >= Setting::weight_decay && setting <= Setting::check_ranks;
}

const SettingInfo* find_setting(std::string_view canonical_name) {
    for (const SettingInfo& info : kSchema) {
        if (info.name == canonical_name) return &info;
    }
    return nullptr;
}

}  // namespace saturate
