// SPDX-License-Identifier: Apache-2.0
#include "engine/train_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/random_state.h"

namespace saturate {

namespace {

constexpr const char* kRandomHost = "random.cpu";
constexpr const char* kRandomDevice = "random.device";
constexpr const char* kRandomRanks = "random.rank";  // of ranks 1 and up: random.rank1, ...

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

// Tensors that a device or precision may lack; all others are required.
struct Optional {
    const char* start;
    const char* dropped;
    const char* missing;
};
constexpr Optional kOptional[] = {
    {kRandomDevice, "the random state saved on another device is not used here",
     "random numbers on this device start from the seed"},
    {"scaler.scale", "the gradient scaler of fp16 is not needed here",
     "the gradient scaler of fp16 starts from scratch"},
    {"scaler.growth", "", ""},
};

}  // namespace

Json TrainFacts::json() const {
    return Json::object({{"samples", samples},
                         {"epoch", position.epoch},
                         {"batch", position.batch},
                         {"epoch_ended", epoch_ended},
                         {"split", split},
                         {"metric", Json(metric)},
                         {"best", Json(best)},
                         {"best_step", Json(best_step)},
                         {"first_metric", Json(first_metric)},
                         {"evaluations_worse", evaluations_worse}});
}

TrainFacts TrainFacts::of(std::int64_t step, const Json& json) {
    auto whole = [&](const char* key) { return json[key].integer().value_or(0); };
    return {.step = step,
            .samples = whole("samples"),
            .position = {.epoch = whole("epoch"), .batch = whole("batch")},
            .epoch_ended = json["epoch_ended"].boolean().value_or(false),
            .split = std::max<std::int64_t>(1, whole("split")),
            .metric = json["metric"].number(),
            .best = json["best"].number(),
            .first_metric = json["first_metric"].number(),
            .best_step = json["best_step"].integer(),
            .evaluations_worse = whole("evaluations_worse")};
}

TrainTensors::TrainTensors(Job& job, TrainingStep& step, std::optional<WeightMean>& mean,
                           DeviceBackend& backend)
    : job_(job), step_(step), mean_(mean), backend_(backend) {}

NamedTensors TrainTensors::model() const {
    NamedTensors out;
    for (const auto& item : job_.model().named_parameters())
        out.emplace_back(item.key(), item.value());
    for (const auto& item : job_.model().named_buffers())
        out.emplace_back(item.key(), item.value());
    return out;
}

NamedTensors TrainTensors::shared() {
    NamedTensors out = model();
    for (const auto& item : step_.optimizer().state()) out.push_back(item);
    if (GradientScaler* scaler = step_.scaler()) {
        out.emplace_back("scaler.scale", scaler->scale);
        out.emplace_back("scaler.growth", scaler->growth);
    }
    if (mean_) out.insert(out.end(), mean_->state().begin(), mean_->state().end());
    return out;
}

NamedTensors TrainTensors::state() const {
    NamedTensors out = step_.optimizer().state();
    if (GradientScaler* scaler = step_.scaler()) {
        out.emplace_back("scaler.scale", scaler->scale);
        out.emplace_back("scaler.growth", scaler->growth);
    }
    if (mean_) out.insert(out.end(), mean_->state().begin(), mean_->state().end());
    out.emplace_back(kRandomHost, random_state(torch::kCPU));
    if (auto state = backend_.random_state()) out.emplace_back(kRandomDevice, *state);
    return out;
}

Checkpoint TrainTensors::take() const {
    MeanInPlace swapped(mean_);
    return {.model = copied(model()), .state = copied(state())};
}

std::vector<std::string> TrainTensors::put(const FoundCheckpoint& found, NamedTensors& others) {
    MeanInPlace swapped(mean_);
    NamedTensors into = state(), from;
    for (const auto& item : found.checkpoint.state)
        (item.first.starts_with(kRandomRanks) ? others : from).push_back(item);
    std::vector<std::string> notes;
    for (const Optional& optional : kOptional) {
        auto is_it = [&](const auto& item) { return item.first == optional.start; };
        bool given = std::ranges::any_of(from, is_it), wanted = std::ranges::any_of(into, is_it);
        if (given == wanted) continue;
        std::erase_if(given ? from : into, is_it);
        std::string line = given ? optional.dropped : optional.missing;
        if (!line.empty()) notes.push_back(line);
    }
    load_tensors(found.checkpoint.model, model(), found.path / "model.safetensors");
    load_tensors(from, into, found.path / "state.safetensors");
    step_.optimizer().restored();
    for (const auto& [name, tensor] : into) {
        if (name == kRandomHost) set_random_state(torch::kCPU, tensor);
        if (name == kRandomDevice) backend_.set_random_state(tensor);
    }
    return notes;
}

}  // namespace saturate
