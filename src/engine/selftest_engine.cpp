// SPDX-License-Identifier: Apache-2.0
// The engine's own paths on a device, against plain arithmetic on the CPU: copies, steps, mixed
// precision, accumulation, layout, capture, running out of memory.
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <cstring>

#include "engine/losses.h"
#include "engine/seed.h"
#include "engine/selftest.h"
#include "engine/step.h"

namespace saturate {

namespace {

constexpr std::int64_t kBatch = 16, kSide = 12, kClasses = 4;

struct Net : torch::nn::Module {
    Net()
        : first(register_module("first",
                                torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 3).padding(1)))),
          second(register_module("second",
                                 torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 8, 3).padding(1)))),
          last(register_module("last", torch::nn::Linear(8 * kSide * kSide, kClasses))) {}
    torch::Tensor forward(const torch::Tensor& x) {
        return last(torch::relu(second(torch::relu(first(x)))).flatten(1));
    }
    torch::nn::Conv2d first, second;
    torch::nn::Linear last;
};

// Only the model and the loss are used here.
class NetJob final : public Job {
  public:
    torch::nn::Module& model() override { return net; }
    torch::Tensor loss(const TensorBatch& batch) override {
        return torch::cross_entropy_loss(net.forward(batch[0]).to(torch::kFloat), batch[1]);
    }
    std::shared_ptr<const SampleSource> training_data() override { return nullptr; }
    std::shared_ptr<const SampleSource> validation_data() override { return nullptr; }
    [[nodiscard]] Metric metric() const override { return {}; }
    void evaluate(const TensorBatch&, torch::Tensor&) override {}
    [[nodiscard]] int metric_sums() const override { return 0; }
    [[nodiscard]] double metric_value(const torch::Tensor&) const override { return 0; }

    Net net;
};

TensorBatch host_batch(int number) {
    set_seed(static_cast<std::uint64_t>(100 + number));
    return {torch::randn({kBatch, 1, kSide, kSide}),
            torch::randint(kClasses, {kBatch}, torch::kLong)};
}

struct Steps {
    StepSettings settings = {};
    std::int64_t split = 1;
    int count = 8;
};

struct Trained {
    std::vector<torch::Tensor> weights;  // on the CPU, in double
    double loss = 0;
    std::string note;
};

Trained train(DeviceBackend& backend, Steps steps) {
    set_seed(1);
    NetJob job;
    steps.settings.optimizer = {.kind = OptimizerKind::sgd};
    TrainingStep step(job, steps.settings, backend);
    if (steps.split > 1) step.set_split(steps.split);
    Trained out;
    for (int i = 0; i < steps.count; ++i) {
        TensorBatch there;
        for (const torch::Tensor& tensor : host_batch(i % 3))
            there.push_back(tensor.to(backend.device()));
        step.run({&there, 1}, 0.01);
        if (std::string line = step.take_note(); !line.empty()) out.note = line;
    }
    out.loss = step.loss().item().toDouble();
    for (const torch::Tensor& weight : job.net.parameters())
        out.weights.push_back(weight.detach().to(torch::kCPU, torch::kDouble));
    return out;
}

// The same steps with LibTorch's autograd in double precision and the update written out.
Trained train_plainly(int count) {
    set_seed(1);
    NetJob job;
    job.net.to(torch::kDouble);
    std::vector<torch::Tensor> weights = job.net.parameters(), momenta(weights.size());
    Trained out;
    for (int i = 0; i < count; ++i) {
        TensorBatch batch = host_batch(i % 3);
        torch::Tensor loss =
            torch::cross_entropy_loss(job.net.forward(batch[0].to(torch::kDouble)), batch[1]);
        std::vector<torch::Tensor> gradients = torch::autograd::grad({loss}, weights);
        torch::NoGradGuard no_gradients;
        for (std::size_t k = 0; k < weights.size(); ++k) {
            momenta[k] = i == 0 ? gradients[k].clone() : momenta[k] * 0.9 + gradients[k];
            weights[k] -= 0.01 * momenta[k];
        }
        out.loss = loss.item().toDouble();
    }
    for (const torch::Tensor& weight : weights) out.weights.push_back(weight.detach());
    return out;
}

double difference(const Trained& a, const Trained& b) {
    double most = 0;
    for (std::size_t i = 0; i < a.weights.size(); ++i)
        most = std::fmax(most, (a.weights[i] - b.weights[i]).abs().max().item().toDouble());
    return most;
}

SelftestCheck within(std::string name, double error, double allowed) {
    return {std::move(name), std::isfinite(error) && error <= allowed,
            fmt::format("largest difference {:.2g}, allowed {:.2g}", error, allowed)};
}

SelftestCheck check_upload(DeviceBackend& backend) {
    constexpr std::size_t kCount = 4096;
    static const FieldSpec kSpec{.name = "x", .element = Element::float32, .shape = {16, 16}};
    std::shared_ptr<SlabMemory> memory = backend.slab_memory();
    std::size_t bytes = kCount * sizeof(float);
    void* data = memory ? memory->allocate(bytes) : std::malloc(bytes);
    std::shared_ptr<void> slab(data, [memory, bytes](void* held) {
        memory ? memory->release(held, bytes) : std::free(held);
    });
    for (std::size_t i = 0; i < kCount; ++i)
        static_cast<float*>(data)[i] = static_cast<float>(i) / 8;
    FieldView field{&kSpec, static_cast<std::byte*>(data)};
    Upload upload = backend.start_upload({.size = 16, .fields = {&field, 1}, .slab = slab});
    backend.await_upload(upload);
    torch::Tensor back = (upload.tensors[0] * 1).cpu();
    double error = 0;
    for (std::size_t i = 0; i < kCount; ++i)
        error = std::fmax(error,
                          std::fabs(back.const_data_ptr<float>()[i] - static_cast<float>(i) / 8));
    return within("a batch to the device and back", error, 0);
}

SelftestCheck check_late_losses(DeviceBackend& backend) {
    LossLog log(backend, 4);
    bool right = true;
    for (int i = 0; i < 12; ++i) {
        log.put(i, torch::full({}, i * 0.5, torch::TensorOptions().device(backend.device())));
        if (!log.is_full()) continue;
        if (auto read = log.turn())
            right = right && read->first_step == i - 7 && read->values[1] == (i - 6) * 0.5f;
    }
    auto rest = log.drain();
    right = right && rest.size() == 1 && rest[0].values == std::vector<float>{4, 4.5, 5, 5.5};
    return {"losses read an interval late", right,
            right ? "every loss at its step" : "wrong losses"};
}

SelftestCheck check_out_of_memory(DeviceBackend& backend) {
    bool thrown = false;
    try {
        (void)torch::empty({std::int64_t{1} << 50},
                           torch::TensorOptions().dtype(torch::kByte).device(backend.device()));
    } catch (const c10::OutOfMemoryError&) {
        thrown = true;
    }
    backend.release_cached();
    bool goes_on = std::isfinite(train(backend, {.count = 2}).loss);
    return {"running out of memory is survived", thrown && goes_on,
            fmt::format("{}, {}", thrown ? "was told" : "was not told",
                        goes_on ? "training goes on" : "training does not go on")};
}

SelftestCheck check_marks(DeviceBackend& backend) {
    backend.mark_begin(7);
    (void)train(backend, {.count = 1});
    backend.mark_end(7);
    backend.synchronise();
    auto busy = backend.step_ns(7);
    return {"the device tells its time", busy && *busy > 0,
            busy ? fmt::format("{:.3g} ms", static_cast<double>(*busy) / 1e6) : "it does not"};
}

}  // namespace

// Eight steps of momentum SGD at 0.01: weights around 0.1 to 1 move by a few hundredths, each by
// sums of up to 2304 products in float (2^-24 each, partly cancelling). 2e-5 is some fifty
// roundings; TF32 would show as 1e-3. Mixed precision keeps 8 (bf16) or 11 bits (fp16) of
// activations.
std::vector<SelftestCheck> selftest_engine(DeviceBackend& backend) {
    std::vector<SelftestCheck> checks{check_upload(backend)};
    Trained plain = train_plainly(8), whole = train(backend, {});
    checks.push_back(
        within("eight steps against plain double precision", difference(whole, plain), 2e-5));
    checks.push_back(within("four micro-batches against one batch",
                            difference(train(backend, {.split = 4}), whole), 2e-5));
    checks.push_back(
        within("channels last against channels first",
               difference(train(backend, {.settings = {.channels_last = true}}), whole), 2e-5));
    checks.push_back(within(
        "bf16 loss against fp32",
        std::fabs(train(backend, {.settings = {.precision = Precision::bf16}}).loss - whole.loss),
        0.02));
    checks.push_back(within(
        "fp16 loss with the scaler against fp32",
        std::fabs(train(backend, {.settings = {.precision = Precision::fp16}}).loss - whole.loss),
        0.005));
    if (backend.proves().capture) {
        Trained captured = train(backend, {.settings = {.capture = true}});
        SelftestCheck check =
            within("a captured step against the step itself", difference(captured, whole), 2e-5);
        check.passed =
            check.passed && captured.note.starts_with("the step is captured as one graph");
        check.detail += "; " + captured.note;
        checks.push_back(check);
    }
    checks.push_back(check_late_losses(backend));
    checks.push_back(check_marks(backend));
    checks.push_back(check_out_of_memory(backend));
    return checks;
}

}  // namespace saturate
