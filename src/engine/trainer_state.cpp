// SPDX-License-Identifier: Apache-2.0
// What a checkpoint keeps of the trainer, and how it comes back.
#include <ATen/Context.h>
#include <fmt/format.h>

#include "base/clock.h"
#include "base/text.h"
#include "engine/trainer.h"

namespace saturate {

namespace {

constexpr const char* kRandomHost = "random.cpu";
constexpr const char* kRandomDevice = "random.device";
constexpr const char* kRandomRanks = "random.rank";  // of further ranks: random.rank1, ...

torch::Tensor random_state(const torch::Device& device) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    std::lock_guard lock(generator.mutex());
    return generator.get_state().clone();
}

void set_random_state(const torch::Device& device, const torch::Tensor& state) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    std::lock_guard lock(generator.mutex());
    generator.set_state(state);
}

NamedTensors copied(const NamedTensors& tensors) {
    torch::NoGradGuard no_gradients;
    NamedTensors out;
    for (const auto& [name, tensor] : tensors) {
        torch::Tensor copy = torch::empty(
            tensor.sizes(),
            tensor.options().device(torch::kCPU).requires_grad(false).memory_format(std::nullopt));
        copy.copy_(tensor);
        out.emplace_back(name, copy);
    }
    return out;
}

Json optional_number(const std::optional<double>& value) { return Json(value); }

}  // namespace

NamedTensors Trainer::model_tensors() const {
    NamedTensors out;
    for (const auto& item : job_.model().named_parameters())
        out.emplace_back(item.key(), item.value());
    for (const auto& item : job_.model().named_buffers())
        out.emplace_back(item.key(), item.value());
    return out;
}

// The live tensors, all but the random states, which are copies.
NamedTensors Trainer::state_tensors() {
    NamedTensors out = step_run_->optimizer().state();
    if (GradientScaler* scaler = step_run_->scaler()) {
        out.emplace_back("scaler.scale", scaler->scale);
        out.emplace_back("scaler.growth", scaler->growth);
    }
    if (mean_) out.insert(out.end(), mean_->state().begin(), mean_->state().end());
    out.emplace_back(kRandomHost, random_state(torch::kCPU));
    if (!backend_.device().is_cpu())
        out.emplace_back(kRandomDevice, random_state(backend_.device()));
    return out;
}

Json Trainer::facts() const {
    return Json::object({{"samples", samples_},
                         {"epoch", position_.epoch},
                         {"batch", position_.batch},
                         {"epoch_ended", epoch_ended_then_},
                         {"batch_size", settings_.batch_size},
                         {"ranks", ranks()},
                         {"seed", settings_.seed},
                         {"split", step_run_->split()},
                         {"metric_name", job_.metric().name},
                         {"metric", optional_number(metric_)},
                         {"best", optional_number(best_)},
                         {"best_step", Json(best_step_)},
                         {"first_metric", optional_number(first_metric_)},
                         {"evaluations_worse", evaluations_worse_}});
}

void Trainer::save_checkpoint(bool is_best) {
    if (places_.checkpoints.empty() || (saved_at_ == step_ && !is_best)) return;
    // Every loss so far is looked at first: weights that a nan went through are never kept.
    for (const ReadLosses& losses : losses_->drain()) look_at(losses);
    if (ended_ == "failed") return;
    std::int64_t begin = now_ns();
    saved_at_ = step_;
    NamedTensors state;
    if (is_together()) state = random_of_ranks();
    if (!writer_) return;  // not the rank that writes
    for (auto& item : copied(state_tensors())) state.push_back(std::move(item));
    writer_->save(
        {.step = step_, .model = copied(model_tensors()), .state = state, .facts = facts()},
        is_best);
    note(EventKind::checkpoint, fmt::format("checkpoint of step {} handed over", step_),
         now_ns() - begin);
}

void Trainer::tell_saved() {
    if (!writer_) return;
    for (const SavedCheckpoint& saved : writer_->take_finished()) {
        std::string line = saved.failure.empty()
                               ? fmt::format("checkpoint of step {} written{}", saved.step,
                                             saved.is_best ? ", the best so far" : "")
                               : fmt::format("no checkpoint of step {}, training goes on: {}",
                                             saved.step, saved.failure);
        note(EventKind::checkpoint, line, saved.duration_ns,
             Json::object({{"path", saved.path.string()},
                           {"best", saved.is_best},
                           {"failed", !saved.failure.empty()}}));
        if (!saved.failure.empty()) observer_.say(line);
    }
}

void Trainer::restore(const FoundCheckpoint& found) {
    const Checkpoint& checkpoint = found.checkpoint;
    for (const std::string& line : found.skipped) observer_.say("passed over: " + line);
    auto batch_size = checkpoint.facts["batch_size"].integer();
    if (batch_size != settings_.batch_size) {
        throw UserError({.where = {found.path.string()},
                         .found = fmt::format("made with batch_size {}, and it is {} now",
                                              batch_size.value_or(0), settings_.batch_size),
                         .expected = "the same batch_size: the position in the data counts batches",
                         .fix = fmt::format("--set batch_size={}", batch_size.value_or(32))});
    }
    load_tensors(checkpoint.model, model_tensors(), found.path / "model.safetensors");
    NamedTensors state = state_tensors(), kept;
    for (const auto& item : checkpoint.state)
        (item.first.starts_with(kRandomRanks) ? random_kept_ : kept).push_back(item);
    load_tensors(kept, state, found.path / "state.safetensors");
    step_run_->optimizer().restored();
    for (const auto& [name, tensor] : state) {
        if (name == kRandomHost) set_random_state(torch::kCPU, tensor);
        if (name == kRandomDevice) set_random_state(backend_.device(), tensor);
    }
    apply_facts(checkpoint.step, checkpoint.facts);
    auto ranks_before = static_cast<int>(checkpoint.facts["ranks"].integer().value_or(1));
    if (ranks_before != ranks()) convert_position(ranks_before);
    saved_at_ = step_;
    observer_.say(fmt::format("resumed from {} at step {}", found.path.string(), step_));
}

void Trainer::apply_facts(std::int64_t step, const Json& facts) {
    auto whole = [&](const char* key) { return facts[key].integer().value_or(0); };
    step_ = step;
    samples_ = whole("samples");
    position_ = {.epoch = whole("epoch"), .batch = whole("batch")};
    epoch_ended_ = epoch_ended_then_ = facts["epoch_ended"].boolean().value_or(false);
    metric_ = facts["metric"].number();
    best_ = facts["best"].number();
    best_step_ = facts["best_step"].integer();
    first_metric_ = facts["first_metric"].number();
    evaluations_worse_ = whole("evaluations_worse");
    if (std::int64_t split = whole("split"); split > 1) step_run_->set_split(split);
}

}  // namespace saturate
