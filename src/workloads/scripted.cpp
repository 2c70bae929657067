// SPDX-License-Identifier: Apache-2.0
#include "workloads/scripted.h"

#include <fmt/format.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include "base/error.h"
#include "base/text.h"

namespace saturate {

namespace fs = std::filesystem;
using torch::Tensor;

namespace {

// Registers the parameters of a TorchScript module under their names, as the trainer expects them.
// They are the module's own tensors, so the module computes with what the optimizer changes.
class Mirror : public torch::nn::Module {
  public:
    explicit Mirror(const torch::jit::Module& script) : script_(script) {
        for (const auto& [name, tensor] : script.named_parameters(/*recurse=*/false))
            register_parameter(name, tensor, tensor.requires_grad());
        for (const auto& [name, tensor] : script.named_buffers(/*recurse=*/false))
            register_buffer(name, tensor);
        for (const auto& [name, child] : script.named_children())
            register_module(name, std::make_shared<Mirror>(child));
    }
    void train(bool on) override {
        script_.train(on);
        torch::nn::Module::train(on);
    }

  private:
    torch::jit::Module script_;
};

[[noreturn]] void throw_not_usable(const fs::path& file, const std::string& found) {
    throw UserError({.where = {file.string()},
                     .found = found,
                     .expected =
                         "a TorchScript file with parameters, whose forward takes the fields "
                         "of a batch and gives the loss",
                     .fix = "torch.jit.script(model).save(path); docs/own-model.md"});
}

std::string short_reason(const std::exception& error) {
    return std::string(split(error.what(), '\n')[0]);
}

class Scripted final : public JobWithData {
  public:
    Scripted(torch::jit::Module script, JobData data)
        : JobWithData(std::move(data)),
          script_(std::move(script)),
          model_(std::make_shared<Mirror>(script_)) {}
    torch::nn::Module& model() override { return *model_; }
    Tensor loss(const TensorBatch& batch) override {
        return script_.forward({batch.begin(), batch.end()}).toTensor();
    }
    [[nodiscard]] Metric metric() const override {
        return {.name = "loss", .unit = "", .higher_is_better = false};
    }
    void evaluate(const TensorBatch& batch, Tensor& sums) override {
        auto samples = static_cast<double>(batch[0].size(0));
        sums[0] += loss(batch).to(torch::kDouble) * samples;
        sums[1] += samples;
    }
    [[nodiscard]] int metric_sums() const override { return 2; }
    [[nodiscard]] double metric_value(const Tensor& sums) const override {
        const double* values = sums.const_data_ptr<double>();
        return values[0] / values[1];
    }

  private:
    torch::jit::Module script_;
    std::shared_ptr<Mirror> model_;
};

}  // namespace

std::unique_ptr<Job> scripted_job(const fs::path& file, JobData data) {
    if (!fs::is_regular_file(file)) throw_not_usable(file, "there is no such file");
    torch::jit::Module script;
    try {
        script = torch::jit::load(file.string(), torch::kCPU);
    } catch (const std::exception& error) {
        throw_not_usable(file, fmt::format("it cannot be loaded: {}", short_reason(error)));
    }
    if (script.parameters().size() == 0) throw_not_usable(file, "it has no parameters");
    std::size_t fields = data.training ? data.training->fields().size() : 0;
    std::size_t arguments =
        script.get_method("forward").function().getSchema().arguments().size() - 1;
    if (data.training && fields != arguments) {
        throw_not_usable(file, fmt::format("its forward takes {} arguments, the data has {} fields",
                                           arguments, fields));
    }
    return std::make_unique<Scripted>(std::move(script), std::move(data));
}

std::unique_ptr<Job> make_scripted(const Settings& settings) {
    const Value* file = settings.get(Setting::model_file);
    if (!file) {
        throw UserError({.found = "job: torchscript without a model",
                         .expected = "model_file: PATH of a TorchScript file",
                         .fix = "model_file: model.pt"});
    }
    fs::path path = file->text;
    fs::path beside = fs::path(file->place.file).parent_path() / path;
    if (!fs::exists(path) && path.is_relative() && fs::exists(beside)) path = beside;
    OpenedData data = open_data(settings);
    return scripted_job(path, {data.training, data.validation});
}

}  // namespace saturate
