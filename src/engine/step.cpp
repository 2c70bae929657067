// SPDX-License-Identifier: Apache-2.0
#include "engine/step.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "engine/compiled_step.h"
#include "engine/recompute.h"
#include "engine/sim_backend.h"
#include "engine/sim_cache.h"
#include "engine/sim_count.h"

namespace saturate {

namespace {

constexpr const char* kElsewhere = "on another rank, which its log names";

}  // namespace

torch::Tensor as_channels_last(const torch::Tensor& tensor) {
    if (tensor.dim() != 4) return tensor;
    c10::IntArrayRef sizes = tensor.sizes();
    std::int64_t channels = sizes[1], height = sizes[2], width = sizes[3];
    std::array<std::int64_t, 4> strides{channels * height * width, 1, width * channels, channels};
    if (tensor.strides() == c10::IntArrayRef(strides)) return tensor;
    // With one channel both layouts have the same bytes, but convolutions look at the strides.
    if (channels == 1 && tensor.is_contiguous()) return tensor.as_strided(sizes, strides);
    torch::Tensor out = torch::empty_strided(sizes, strides, tensor.options());
    out.copy_(tensor);
    return out;
}

TensorBatch as_channels_last(const TensorBatch& batch) {
    TensorBatch out;
    for (const torch::Tensor& tensor : batch) out.push_back(as_channels_last(tensor));
    return out;
}

TensorBatch part_of(const TensorBatch& batch, std::int64_t begin, std::int64_t end) {
    TensorBatch out;
    for (const torch::Tensor& tensor : batch) out.push_back(tensor.narrow(0, begin, end - begin));
    return out;
}

// A captured step has its own copies of the batches.
struct TrainingStep::Captured {
    // Real steps run before the capture, in which libraries choose algorithms and allocate.
    static constexpr int kWarmUp = 3;
    int warm = 0;
    std::int64_t full = 0;  // samples of the step that is captured
    bool said_others = false;
    std::vector<TensorBatch> batches;
    torch::Tensor loss;
    StepTimes unused;  // the recorded work refers to it
    std::unique_ptr<CapturedStep> step;

    [[nodiscard]] bool fits(std::span<const TensorBatch> given) const {
        return std::equal(given.begin(), given.end(), batches.begin(), batches.end(),
                          [](const TensorBatch& a, const TensorBatch& b) {
                              return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                                                [](const torch::Tensor& x, const torch::Tensor& y) {
                                                    return x.sizes() == y.sizes();
                                                });
                          });
    }
};

TrainingStep::TrainingStep(Job& job, const StepSettings& settings, DeviceBackend& backend)
    : job_(job), settings_(settings), backend_(backend) {
    torch::NoGradGuard no_gradients;
    torch::nn::Module& model = job.model();
    model.to(backend.device());
    model.train();
    for (const auto& item : model.named_parameters()) {
        torch::Tensor parameter = item.value();
        if (settings.channels_last) parameter.set_data(as_channels_last(parameter.detach()));
        if (parameter.requires_grad()) parameters_.emplace_back(item.key(), parameter);
    }
    if (settings.capture && backend.proves().capture) {
        captured_ = std::make_unique<Captured>();
        captured_->full = settings.full;
    }
    OptimizerSettings optimizer = settings.optimizer;
    optimizer.replayed = captured_ != nullptr;
    optimizer_.emplace(parameters_, optimizer);
    if (settings.precision == Precision::fp16) scaler_.emplace(backend.device());
    // A simulated GPU is told that its step is captured; the job itself is what gets counted.
    wants_compiled_ = settings.compile && backend.device().is_cpu() && !backend.simulated();
    loss_ = torch::zeros({}, torch::TensorOptions().dtype(torch::kFloat).device(backend.device()));
}

TrainingStep::~TrainingStep() = default;

void TrainingStep::set_split(std::int64_t split) {
    split_ = split;
    if (!captured_) return;
    captured_.reset();
    note_ = "the step is no longer captured: its micro-batch changed";
}

std::string TrainingStep::take_note() { return std::exchange(note_, ""); }

StepTimes TrainingStep::run(std::span<const TensorBatch> batches, double learning_rate) {
    StepTimes times;
    optimizer_->set_learning_rate(learning_rate);
    if (SimulatedStep* device = backend_.simulated()) {
        run_simulated(*device, batches, times);
        return times;
    }
    bool ran = false;
    // Starting a graph also takes device memory.
    if (captured_) with_memory_errors([&] { ran = try_captured(batches, times); });
    if (!ran) run_now(batches, times);
    return times;
}

// Counts the first step on the CPU with a few samples. From then on a step only launches a number
// of samples. The weights stay as they were: a device that is not there learns nothing.
void TrainingStep::run_simulated(SimulatedStep& device, std::span<const TensorBatch> batches,
                                 StepTimes& times) {
    if (!device.is_counted()) {
        std::int64_t begin = now_ns();
        std::int64_t size = batches[0][0].size(0);
        // The smallest batches are counted each time.
        std::string key = settings_.count_key.empty() || size < 4 ? "" : settings_.count_key;
        std::optional<StepCost> cost = key.empty() ? std::nullopt : find_count(key);
        if (!cost) {
            // Counts in fp32, because the model of the device works out itself what reduced
            // precision saves.
            Precision chosen = std::exchange(settings_.precision, Precision::fp32);
            cost = count_step(
                [&](std::int64_t samples) {
                    StepTimes unused;
                    TensorBatch few = part_of(batches[0], 0, samples);
                    run_now(std::span<const TensorBatch>(&few, 1), unused);
                },
                size);
            settings_.precision = chosen;
            if (!key.empty()) keep_count(key, *cost);
        }
        times.apart_ns = now_ns() - begin;
        device.set_cost(std::move(*cost), {.precision = settings_.precision,
                                           .tf32 = settings_.tf32,
                                           .channels_last = settings_.channels_last,
                                           .captured = settings_.capture});
    }
    std::int64_t begin = now_ns();
    for (const TensorBatch& batch : batches) {
        std::int64_t size = batch[0].size(0);
        std::int64_t parts = std::min(split_, size);
        for (std::int64_t i = 0; i < parts; ++i)
            device.launch(size * (i + 1) / parts - size * i / parts);
    }
    times.forward_ns += now_ns() - begin;  // launch time only; the device keeps its own time
}

void TrainingStep::run_now(std::span<const TensorBatch> batches, StepTimes& times) {
    optimizer_->clear_gradients(settings_.set_to_none);
    loss_ = torch::Tensor();
    if (reducer_) {
        bool failed = false;
        std::string said;
        try {
            with_memory_errors([&] { add_all_gradients(batches, times); });
        } catch (const c10::OutOfMemoryError& error) {
            failed = true;
            said = error.what_without_backtrace();
        }
        sum_over_ranks(failed, said, times);
    } else {
        with_memory_errors([&] { add_all_gradients(batches, times); });
    }
    std::int64_t begin = now_ns();
    torch::NoGradGuard no_gradients;
    if (scaler_ || settings_.grad_clip > 0) prepare_gradients();
    update_weights();
    times.optimizer_ns += now_ns() - begin;
}

// Does everything that needs memory before the update. The ranks agree on the outcome while no
// weight has changed: a change on only some of them could not be undone.
void TrainingStep::prepare_gradients() {
    bool failed = false;
    std::string said;
    try {
        with_memory_errors([&] {
            if (scaler_) scaler_->unscale(optimizer_->gradients());
            if (settings_.grad_clip > 0 && !optimizer_->gradients().empty())
                clip_gradients(optimizer_->gradients(), settings_.grad_clip);
        });
    } catch (const c10::OutOfMemoryError& error) {
        if (!reducer_) throw;
        failed = true;
        said = error.what_without_backtrace();
    }
    if (!reducer_) return;
    bool any = reducer_->any_failed(failed);
    TORCH_CHECK_WITH(OutOfMemoryError, !any, failed ? said.c_str() : kElsewhere);
}

// Works in place without extra memory. If a device runs out of memory here all the same, this rank
// is lost to the others, which have already gone on.
void TrainingStep::update_weights() {
    try {
        optimizer_->step(scaler_ ? std::optional(scaler_->found_infinite) : std::nullopt);
        if (scaler_) scaler_->update();
    } catch (const c10::OutOfMemoryError& error) {
        if (!reducer_) throw;
        throw MachineError({.found = fmt::format("out of memory while the weights change: {}",
                                                 error.what_without_backtrace()),
                            .expected = "memory for the model, its gradients and one sample",
                            .fix = "a smaller batch_size; --resume continues from the checkpoint "
                                   "that another rank keeps"});
    }
}

void TrainingStep::add_all_gradients(std::span<const TensorBatch> batches, StepTimes& times) {
    std::int64_t samples = 0, left = 0;
    for (const TensorBatch& batch : batches) {
        samples += batch[0].size(0);
        left += std::min(split_, batch[0].size(0));
    }
    for (const TensorBatch& batch : batches) {
        std::int64_t size = batch[0].size(0);
        std::int64_t parts = std::min(split_, size);
        for (std::int64_t i = 0; i < parts; ++i) {
            std::int64_t begin = size * i / parts, end = size * (i + 1) / parts;
            double weight = static_cast<double>(end - begin) / static_cast<double>(samples);
            if (--left == 0 && reducer_) reducer_->begin();  // only the last backward sends
            add_gradients(parts == 1 ? batch : part_of(batch, begin, end), weight, times);
        }
    }
}

double TrainingStep::rank_share() const { return reducer_ ? 1.0 / reducer_->ranks() : 1.0; }

void TrainingStep::sum_over_ranks(bool failed, const std::string& said, StepTimes& times) {
    ReducerAnswer answer = reducer_->finish(failed, own_wish_);
    times.communication_ns += answer.exposed_ns;
    times.communication_total_ns += answer.total_ns;
    times.collectives += answer.collectives;
    times.communication_bytes += answer.bytes;
    times.mark = answer.mark;
    any_wish_ = answer.stop;
    if (std::string line = reducer_->take_note(); !line.empty()) note_ = line;
    TORCH_CHECK_WITH(OutOfMemoryError, !answer.any_failed, failed ? said.c_str() : kElsewhere);
}

void TrainingStep::add_gradients(const TensorBatch& batch, double weight, StepTimes& times) {
    if (add_compiled_gradients(batch, weight, times)) return;
    std::int64_t begin = now_ns();
    torch::Tensor loss;
    {
        Autocast mixed(backend_.device().type(), settings_.precision);
        loss = job_.loss(settings_.channels_last ? as_channels_last(batch) : batch);
    }
    if (loss.scalar_type() != torch::kFloat) loss = loss.to(torch::kFloat);
    if (weight != 1.0) loss = loss * weight;
    loss_ = loss_.defined() ? loss_ + loss.detach() : loss.detach();
    if (reducer_) loss = loss * rank_share();  // so that the sum over the ranks is the mean
    std::int64_t forward = now_ns();
    (scaler_ ? scaler_->scaled(loss) : loss).backward();
    std::int64_t backward = now_ns();
    times.forward_ns += forward - begin;
    times.backward_ns += backward - forward;
}

// Warm-up steps are real steps, capturing runs nothing, and the first replay is the step that was
// due: no batch is used twice.
bool TrainingStep::try_captured(std::span<const TensorBatch> batches, StepTimes& times) {
    Captured& captured = *captured_;
    std::int64_t samples = 0;
    for (const TensorBatch& batch : batches) samples += batch[0].size(0);
    if (captured.full == 0) captured.full = samples;
    if (samples != captured.full) {  // e.g. the last step of an epoch
        if (!std::exchange(captured.said_others, true))
            note_ = fmt::format("steps that do not have {} samples run without the captured graph",
                                captured.full);
        return false;
    }
    if (captured.warm < Captured::kWarmUp) {
        ++captured.warm;
        backend_.run_apart([&] { run_now(batches, times); });
        return true;
    }
    torch::NoGradGuard no_gradients;
    std::int64_t begin = now_ns();
    if (captured.step) {
        if (!captured.fits(batches)) return false;  // as many samples, divided differently
        for (std::size_t i = 0; i < batches.size(); ++i) {
            for (std::size_t k = 0; k < batches[i].size(); ++k)
                captured.batches[i][k].copy_(batches[i][k], /*non_blocking=*/true);
        }
    } else {
        for (const TensorBatch& batch : batches) {
            TensorBatch copy;
            for (const torch::Tensor& tensor : batch) copy.push_back(tensor.clone());
            captured.batches.push_back(std::move(copy));
        }
        try {
            optimizer_->clear_gradients(true);
            captured.step = backend_.capture([this, &captured] {
                torch::AutoGradMode with_gradients(true);
                InCapture inside;
                run_now(captured.batches, captured.unused);
            });
            captured.loss = loss_;
            note_ = fmt::format("the step is captured as one graph of {} samples", samples);
        } catch (const c10::OutOfMemoryError&) {
            throw;
        } catch (const std::exception& error) {
            note_ = fmt::format("the step cannot be captured and runs without a graph: {}",
                                saturate::split(error.what(), '\n')[0].substr(0, 200));
            captured_.reset();
            optimizer_->clear_gradients(true);
            return false;
        }
    }
    captured.step->replay();
    loss_ = captured.loss;
    times.forward_ns += now_ns() - begin;  // forward, backward and update are now one call
    return true;
}

}  // namespace saturate
