// SPDX-License-Identifier: Apache-2.0
// The table of all settings: name, kind, range, default, level and help. The reader checks values
// against it, optimize writes by it, and docs/settings.md is made from it, so they cannot disagree.
#pragma once

#include <span>
#include <string_view>

namespace saturate {

// How far a change of a setting may go. Each level includes those before it.
enum class Level { safe, numerics, training, model };
[[nodiscard]] std::string_view level_name(Level level);
[[nodiscard]] Level level_named(std::string_view name);  // one of the four

enum class Kind { whole, number, flag, precision, compile, word, size };

enum class Setting {
    // loader
    batch_size,
    global_batch_size,
    eval_batch_size,
    gradient_accumulation_steps,
    num_workers,
    prefetch_factor,
    pin_memory,
    persistent_workers,
    non_blocking,
    cache,
    // arithmetic
    precision,
    tf32,
    channels_last,
    compile,
    compile_mode,
    cudnn_benchmark,
    deterministic,
    fused_optimizer,
    set_to_none,
    gradient_checkpointing,
    // training
    optimizer,
    learning_rate,
    grad_clip,
    epochs,
    log_interval,
    eval_interval,
    checkpoint_interval,
    dataset_size,
    seed,
    // read by `train` only
    weight_decay,
    momentum,
    schedule,
    warmup_steps,
    learning_rate_min,
    schedule_step,
    schedule_factor,
    ema,
    early_stopping,
    eval_steps,
    checkpoint_steps,
    checkpoint_keep,
    bad_samples_max,
    window_stride,
    window_horizon,
    target_column,
    threads,
    memory_limit,
    rank_timeout,
    gradient_compression,
    bucket_size,
    check_ranks,
    // model and data
    job,
    data,
    model_file,
    base_channels,
    num_blocks,
    patch_size,
    image_size,
    hidden_size,
    num_layers,
    cell,
    num_features,
    num_classes,
    sequence_length,
    window_size,
    use_perceptual,
};

struct SettingInfo {
    Setting id;
    std::string_view name;  // canonical
    Kind kind;
    double least = 0;  // for whole and number
    double most = 0;
    std::string_view default_text;  // empty: none
    Level level;
    std::string_view help;
};

[[nodiscard]] std::span<const SettingInfo> schema();
[[nodiscard]] const SettingInfo& info_of(Setting setting);
// True for names that hand-written loops use in their own ways ("ema: true"). They are read in our
// own files only.
[[nodiscard]] bool is_for_train_only(Setting setting);
[[nodiscard]] const SettingInfo* find_setting(std::string_view canonical_name);

}  // namespace saturate
