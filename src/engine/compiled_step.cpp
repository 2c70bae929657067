// SPDX-License-Identifier: Apache-2.0
#include "engine/compiled_step.h"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "base/file.h"
#include "engine/compile_build.h"
#include "engine/compile_trace.h"

namespace saturate {

namespace fs = std::filesystem;
using torch::Tensor;

namespace {

// How far the graph may be from the job's own step, as a share of the value. Summing in another
// order changes values by about 1e-6 per layer in float32; bfloat16 has 8 bits. If that makes a
// ReLU or a maximum switch, the gradients of all layers before it jump: by 1 % in a ResNet-18 whose
// loss and last layer agreed to 1e-6. A wrong graph changes the gradients far more.
struct Tolerance {
    double loss, gradient;
};
constexpr Tolerance kFloat{1e-3, 5e-2};
constexpr Tolerance kHalf{3e-2, 1e-1};

bool same_kind(const Tensor& a, const Tensor& b) {
    return a.scalar_type() == b.scalar_type() && a.device() == b.device() &&
           a.sizes() == b.sizes() && a.strides() == b.strides();
}

// Root mean square.
double size_of(const Tensor& tensor) {
    if (tensor.numel() == 0) return 0;
    return tensor.detach().to(torch::kDouble).square().mean().sqrt().item<double>();
}

// Distance of `a` from `b` as a share of the size of `b`, or of `least` if that is larger.
double apart(const Tensor& a, const Tensor& b, double least = 1e-5) {
    if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
    double size = size_of(a.detach().to(torch::kDouble) - b.detach().to(torch::kDouble));
    return size / std::max(size_of(b), least);
}

// Saves the model's buffers, which a step changes besides gradients, and restores them at the end
// of the scope.
class BuffersKept {
  public:
    explicit BuffersKept(torch::nn::Module& model) : buffers_(model.buffers()) {
        for (const Tensor& buffer : buffers_) copies_.push_back(buffer.clone());
    }
    ~BuffersKept() { restore(); }
    BuffersKept(const BuffersKept&) = delete;
    BuffersKept& operator=(const BuffersKept&) = delete;
    void restore() {
        torch::NoGradGuard no_grad;
        for (std::size_t i = 0; i < buffers_.size(); ++i) buffers_[i].copy_(copies_[i]);
    }

  private:
    std::vector<Tensor> buffers_, copies_;
};

// Loss and gradients by autograd; leaves .grad alone.
Tensor run_eagerly(Job& job, const TensorBatch& batch, std::vector<Tensor>& gradients) {
    Tensor loss = job.loss(batch);
    gradients = torch::autograd::grad({loss}, job.model().parameters(), {}, false, false, true);
    return loss.detach();
}

template <typename Run>
double seconds_of(const Run& run) {  // best of up to five within a second
    double best = 1e9, total = 0;
    for (int i = 0; i < 5 && total < 1; ++i) {
        std::int64_t start = now_ns();
        run();
        double seconds = static_cast<double>(now_ns() - start) * 1e-9;
        best = std::min(best, seconds);
        total += seconds;
    }
    return best;
}

}  // namespace

struct CompiledStep::Impl {
    torch::nn::Module* model = nullptr;
    std::unique_ptr<torch::inductor::AOTIModelPackageLoader> graph;
    std::vector<Tensor> inputs;      // parameters, buffers, batch
    std::vector<Tensor> parameters;  // to notice when the trainer replaces them
    std::size_t batch_begin = 0;
    std::vector<Tensor> example;  // batch; only its shapes count
};

CompiledStep::CompiledStep(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CompiledStep::~CompiledStep() = default;

bool CompiledStep::accepts(const TensorBatch& batch) const {
    return std::ranges::equal(batch, impl_->example, same_kind);
}

Tensor CompiledStep::run(const TensorBatch& batch, std::vector<Tensor>& gradients) {
    Impl& impl = *impl_;
    std::ranges::copy(batch, impl.inputs.begin() + static_cast<std::ptrdiff_t>(impl.batch_begin));
    std::vector<Tensor> results = impl.graph->run(impl.inputs);
    gradients.resize(impl.parameters.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
        gradients[i] = std::move(results[i + 1]);
        // Fused optimizers go through memory in order: a gradient needs the
        // strides of its parameter.
        if (gradients[i].strides() != impl.parameters[i].strides()) {
            gradients[i] = torch::empty_like(impl.parameters[i]).copy_(gradients[i]);
        }
    }
    return std::move(results[0]);
}

// Builds, loads and checks the graph. Every reason not to use it becomes a message.
struct StepCompiler {
    Job& job;
    const TensorBatch& batch;
    const CompileSettings& settings;

    [[nodiscard]] static CompileOutcome eager(const std::string& why) {
        return {nullptr, fmt::format("compile: not compiled: {}", why)};
    }

    CompileOutcome compile() {
        if (batch.empty() || !batch[0].device().is_cpu())
            return eager("compiled graphs are for the CPU; on a GPU the step is captured instead");
        TracedLoss traced = trace_loss(job, batch);
        if (!traced.problem.empty()) return eager(traced.problem);
        GraphFiles files = graph_files(traced, settings);
        bool built = false;
        std::string verdict = read_if_there(files.verdict);
        if (!verdict.empty() && settings.when_faster_only) return eager(verdict);
        if (!fs::exists(files.package)) {
            std::string problem = build_graph(traced, files, settings);
            if (!problem.empty()) return eager(problem);
            built = true;
        }
        std::unique_ptr<CompiledStep> step;
        try {
            step = load(files.package);
        } catch (const std::exception& error) {
            return eager(fmt::format("{} cannot be loaded: {}", files.package.string(),
                                     first_line(error.what())));
        }
        return check(std::move(step), files, built);
    }

    std::unique_ptr<CompiledStep> load(const fs::path& package) {
        auto impl = std::make_unique<CompiledStep::Impl>();
        impl->model = &job.model();
        impl->graph = std::make_unique<torch::inductor::AOTIModelPackageLoader>(
            package.string(), "model", /*run_single_threaded=*/true);
        impl->parameters = job.model().parameters();
        for (const Tensor& parameter : impl->parameters) impl->inputs.push_back(parameter.detach());
        for (const Tensor& buffer : job.model().buffers()) impl->inputs.push_back(buffer);
        impl->batch_begin = impl->inputs.size();
        impl->inputs.resize(impl->inputs.size() + batch.size());
        impl->example = batch;
        return std::unique_ptr<CompiledStep>(new CompiledStep(std::move(impl)));
    }

    CompileOutcome check(std::unique_ptr<CompiledStep> step, const GraphFiles& files, bool built) {
        BuffersKept kept(job.model());
        std::vector<Tensor> expected, found;
        Tensor loss = run_eagerly(job, batch, expected);
        std::vector<Tensor> buffers;
        for (const Tensor& buffer : job.model().buffers()) buffers.push_back(buffer.clone());
        // A bias before batch normalisation has only noise for a gradient: compare it with the size
        // of the other gradients.
        double least = 1e-5;
        for (const Tensor& gradient : expected) {
            if (gradient.defined()) least = std::max(least, size_of(gradient) / 100);
        }
        kept.restore();
        const Tolerance& tolerance = at::autocast::is_autocast_enabled(at::kCPU) ? kHalf : kFloat;
        std::string differs;
        auto compare = [&](const std::string& name, double far, double most) {
            if (differs.empty() && !(far <= most))  // also if it is nan
                differs =
                    fmt::format("on the first batch {} differs from the job's own by {:.2g} %",
                                name, far * 100);
        };
        try {
            compare("the loss", apart(step->run(batch, found), loss), tolerance.loss);
        } catch (const std::exception& error) {
            return eager(fmt::format("the graph fails: {}", first_line(error.what())));
        }
        auto names = job.model().named_parameters();
        for (std::size_t i = 0; i < expected.size(); ++i) {
            Tensor wanted = expected[i].defined() ? expected[i] : torch::zeros_like(found[i]);
            compare("the gradient of " + names[i].key(), apart(found[i], wanted, least),
                    tolerance.gradient);
        }
        auto buffer_names = job.model().named_buffers();
        // The running mean of values around zero is a difference of large sums.
        for (std::size_t i = 0; i < buffers.size(); ++i)
            compare(buffer_names[i].key(), apart(buffer_names[i].value(), buffers[i]),
                    tolerance.gradient);
        if (!differs.empty()) return eager(differs);
        if (!settings.when_faster_only || !built)
            return {std::move(step), fmt::format("compile: graph {} checked on the first batch",
                                                 files.package.stem().string())};
        return compare_speed(std::move(step), files);
    }

    CompileOutcome compare_speed(std::unique_ptr<CompiledStep> step, const GraphFiles& files) {
        std::vector<Tensor> gradients;
        double eager_ms = 1e3 * seconds_of([&] { (void)run_eagerly(job, batch, gradients); });
        double graph_ms = 1e3 * seconds_of([&] { (void)step->run(batch, gradients); });
        std::string times =
            fmt::format("gradients take {:.3g} ms compiled, {:.3g} ms without", graph_ms, eager_ms);
        if (graph_ms < eager_ms)
            return {std::move(step), fmt::format("compile: graph {} built; {}",
                                                 files.package.stem().string(), times)};
        write_file_whole(files.verdict, times);
        return eager(times);
    }
};

CompileOutcome compile_step(Job& job, const TensorBatch& batch, const CompileSettings& settings) {
    return StepCompiler{job, batch, settings}.compile();
}

}  // namespace saturate
