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
    bool tf32 = false;      // for a simulated device; a real one is told when it is opened
    bool capture = false;   // record the step and replay it, if the device can ...
    std::int64_t full = 0;  // ... for steps of this many samples; 0: as many as the first step
    bool compile = false;   // forward and backward as one compiled graph, on the CPU
    std::string count_key;  // of a simulated device's count (sim_cache.h); empty: no cache
    double grad_clip = 0;   // 0: off
    OptimizerSettings optimizer;
};

// Times on the host; the device may still be working.
struct StepTimes {
    std::int64_t forward_ns = 0;
    std::int64_t backward_ns = 0;
    std::int64_t optimizer_ns = 0;
    std::int64_t apart_ns = 0;          // counting for a simulated device: not part of the step
    std::int64_t communication_ns = 0;  // waited for the other ranks' gradients
    std::int64_t communication_total_ns = 0;  // ... plus what backward hid
    std::int64_t collectives = 0;
    std::int64_t communication_bytes = 0;  // sent in the collectives
    std::optional<std::int64_t> mark;      // of the device's collectives: see ReducerAnswer
};

class CompiledStep;  // engine/compiled_step.h

class TrainingStep {
  public:
    // Moves the model to the device and into its layout.
    TrainingStep(Job& job, const StepSettings& settings, DeviceBackend& backend);
    ~TrainingStep();

    // Sums the gradients of all batches, weighted by their samples. Throws c10::OutOfMemoryError;
    // the weights are then unchanged, and the step can be run again.
    StepTimes run(std::span<const TensorBatch> batches, double learning_rate);
    // Loss of the last run, as a number on the device.
    [[nodiscard]] const torch::Tensor& loss() const { return loss_; }

    // From now on the step sums its gradients over the ranks. The reducer outlives the step. If one
    // rank runs out of memory, all ranks then throw, as long as no weight has changed.
    void set_reducer(GradientReducer* reducer) { reducer_ = reducer; }
    // Sent to the other ranks with the next run(); wish_of_any() then tells what any rank wished.
    void wish_to_stop(const StopWish& wish) { own_wish_ = wish; }
    [[nodiscard]] const StopWish& wish_of_any() const { return any_wish_; }

    // Micro-batches per batch; doubled after running out of memory.
    [[nodiscard]] std::int64_t split() const { return split_; }
    void set_split(std::int64_t split);
    // A message for the user about capturing and compiling. Returned once.
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
    [[nodiscard]] double rank_share() const;  // factor for the gradients: 1 / ranks
    // In step_compiled.cpp. Returns false if there is no graph for this batch.
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
    std::unique_ptr<Captured> captured_;  // null: not wanted, or abandoned
    std::unique_ptr<CompiledStep> compiled_;
    bool wants_compiled_ = false;                                  // until the first batch has come
    std::vector<torch::Tensor> all_parameters_, graph_gradients_;  // of the compiled graph
    torch::Tensor loss_;
    std::int64_t split_ = 1;
    std::string note_;
    GradientReducer* reducer_ = nullptr;  // null: one process
    StopWish own_wish_, any_wish_;
};

// Puts image tensors into channels-last layout, including those with one channel, which the usual
// call leaves alone.
[[nodiscard]] torch::Tensor as_channels_last(const torch::Tensor& tensor);
[[nodiscard]] TensorBatch as_channels_last(const TensorBatch& batch);
// Samples [begin, end) of a batch.
[[nodiscard]] TensorBatch part_of(const TensorBatch& batch, std::int64_t begin, std::int64_t end);

}  // namespace saturate
