// SPDX-License-Identifier: Apache-2.0
// One optimizer step: forward, backward, clip, update, over one or more batches. Reads nothing back
// from the device. Training thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "config/settings.h"
#include "engine/autocast.h"
#include "engine/device_backend.h"
#include "engine/job.h"
#include "engine/optimizer.h"
#include "engine/reducer.h"

namespace saturate {

struct StepSettings {
    Precision precision = Precision::fp32;
    bool channels_last = false;
    bool set_to_none = true;
    bool tf32 = false;      // of a simulated device; a real one is told when it is opened
    bool capture = false;   // record the step and replay it, where the device can ...
    std::int64_t full = 0;  // ... with so many samples; others run as they are. 0: as the first
    bool compile = false;   // forward and backward as one compiled graph, on the CPU
    std::string count_key;  // of a simulated device (sim_cache.h); empty: counted anew
    double grad_clip = 0;   // 0: off
    OptimizerSettings optimizer;
};

// On the host; the device may still be at work.
struct StepTimes {
    std::int64_t forward_ns = 0;
    std::int64_t backward_ns = 0;
    std::int64_t optimizer_ns = 0;
    std::int64_t apart_ns = 0;          // counting for a simulated device: no part of the step
    std::int64_t communication_ns = 0;  // waited for the other ranks' gradients
    std::int64_t communication_total_ns = 0;  // ... and what was hidden behind backward
    std::int64_t collectives = 0;
    std::int64_t communication_bytes = 0;  // in them
    std::optional<std::int64_t> mark;      // of the device's collectives: see ReducerAnswer
};

class CompiledStep;  // engine/compiled_step.h

class TrainingStep {
  public:
    // Moves the model to the device and into its layout.
    TrainingStep(Job& job, const StepSettings& settings, DeviceBackend& backend);
    ~TrainingStep();

    // The gradients of all batches are added up, weighted by their samples. Throws
    // c10::OutOfMemoryError; the weights are as before then, and the step can be run again.
    StepTimes run(std::span<const TensorBatch> batches, double learning_rate);
    // Of the last run: a number on the device.
    [[nodiscard]] const torch::Tensor& loss() const { return loss_; }

    // Gradients are summed over the ranks from now on; outlives the step. Memory that runs out on
    // one rank then throws on all of them, as long as no weight has changed.
    void set_reducer(GradientReducer* reducer) { reducer_ = reducer; }
    // Told to the other ranks with the next run(), after which all know of anyone's.
    void wish_to_stop(const StopWish& wish) { own_wish_ = wish; }
    [[nodiscard]] const StopWish& wish_of_any() const { return any_wish_; }

    // Micro-batches per batch; doubled after running out of memory.
    [[nodiscard]] std::int64_t split() const { return split_; }
    void set_split(std::int64_t split);
    // What to tell the user about capturing and compiling, once.
    [[nodiscard]] std::string take_note();

    [[nodiscard]] Optimizer& optimizer() { return *optimizer_; }
    [[nodiscard]] GradientScaler* scaler() { return scaler_ ? &*scaler_ : nullptr; }
    [[nodiscard]] const NamedTensors& parameters() const { return parameters_; }

  private:
    struct Captured;
    void run_now(std::span<const TensorBatch> batches, StepTimes& times);
    void run_simulated(SimulatedStep& device, std::span<const TensorBatch> batches,
                       StepTimes& times);
    void add_all_gradients(std::span<const TensorBatch> batches, StepTimes& times);
    void add_gradients(const TensorBatch& batch, double weight, StepTimes& times);
    void sum_over_ranks(bool failed, const std::string& said, StepTimes& times);
    void prepare_gradients();
    void update_weights();
    [[nodiscard]] double rank_share() const;  // of the gradients: 1 / ranks
    // In step_compiled.cpp. False when there is no graph for this batch.
    [[nodiscard]] bool add_compiled_gradients(const TensorBatch& batch, double weight,
                                              StepTimes& times);
    void compile(const TensorBatch& batch);
    [[nodiscard]] bool try_captured(std::span<const TensorBatch> batches, StepTimes& times);

    Job& job_;
    StepSettings settings_;
    DeviceBackend& backend_;
    NamedTensors parameters_;
    std::optional<Optimizer> optimizer_;
    std::optional<GradientScaler> scaler_;
    std::unique_ptr<Captured> captured_;  // null: not wanted, or given up
    std::unique_ptr<CompiledStep> compiled_;
    bool wants_compiled_ = false;                                  // until the first batch has come
    std::vector<torch::Tensor> all_parameters_, graph_gradients_;  // of the compiled graph
    torch::Tensor loss_;
    std::int64_t split_ = 1;
    std::string note_;
    GradientReducer* reducer_ = nullptr;  // null: one process
    StopWish own_wish_, any_wish_;
};

// Image tensors pixel by pixel, also with one channel, where the usual call changes nothing.
[[nodiscard]] torch::Tensor as_channels_last(const torch::Tensor& tensor);
[[nodiscard]] TensorBatch as_channels_last(const TensorBatch& batch);
// Samples [begin, end) of a batch.
[[nodiscard]] TensorBatch part_of(const TensorBatch& batch, std::int64_t begin, std::int64_t end);

}  // namespace saturate
