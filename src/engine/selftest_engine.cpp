// SPDX-License-Identifier: Apache-2.0
// Compares steps on a device with plain arithmetic on the CPU: copies, optimizers, mixed precision,
// accumulation, layout, losses read late, running out of memory.
#include <fmt/format.h>

#include <cmath>

#include "engine/losses.h"
#include "engine/seed.h"
#include "engine/selftest.h"
#include "engine/selftest_net.h"

namespace saturate {

namespace {

// A batch in the memory that the loader would use. Its values are eighths of the whole numbers from
// `from` on.
struct HostBatch {
    static constexpr std::int64_t kSize = 16, kCount = 4096;

    HostBatch(DeviceBackend& backend, std::int64_t from)
        : memory(backend.slab_memory() ? backend.slab_memory() : ordinary_memory()) {
        void* data = memory->allocate(kBytes);
        slab = std::shared_ptr<void>(data,
                                     [kept = memory](void* held) { kept->release(held, kBytes); });
        for (std::int64_t i = 0; i < kCount; ++i)
            static_cast<float*>(data)[i] = static_cast<float>(from + i) / 8;
        field = {&spec, static_cast<std::byte*>(data)};
    }
    [[nodiscard]] Batch batch() { return {.size = kSize, .fields = {&field, 1}, .slab = slab}; }
    // Largest difference to a copy of the batch on the device.
    [[nodiscard]] double difference(const torch::Tensor& there) const {
        torch::Tensor back = (there * 1).cpu().flatten();
        const auto* mine = static_cast<const float*>(slab.get());
        double most = 0;
        for (std::int64_t i = 0; i < kCount; ++i)
            most = std::fmax(most, std::fabs(back.const_data_ptr<float>()[i] - mine[i]));
        return most;
    }

    static constexpr std::size_t kBytes = kCount * sizeof(float);
    FieldSpec spec{.name = "x", .element = Element::float32, .shape = {16, 16}};
    std::shared_ptr<SlabMemory> memory;
    std::shared_ptr<void> slab;
    FieldView field;
};

SelftestCheck check_upload(DeviceBackend& backend) {
    HostBatch one(backend, 0);
    Upload upload = backend.start_upload(one.batch());
    backend.await_upload(upload);
    return check_within(one.difference(upload.tensors[0]), 0);
}

// Asks for the second batch first.
SelftestCheck check_two_uploads(DeviceBackend& backend) {
    HostBatch first(backend, 1), second(backend, 20000);
    Upload one = backend.start_upload(first.batch());
    Upload two = backend.start_upload(second.batch());
    backend.await_upload(two);
    double error = second.difference(two.tensors[0]);
    backend.await_upload(one);
    return check_within(std::fmax(error, first.difference(one.tensors[0])), 0);
}

// Applies the same gradients on the device and on the CPU, whose updates are tested against the
// formulas. Values around 1 to 3: ten roundings of 2^-23.
SelftestCheck check_optimizer(DeviceBackend& backend, OptimizerKind kind) {
    auto run = [&](const torch::Device& device, bool fused) {
        set_seed(4);
        NamedTensors parameters;
        for (const char* name : {"a", "b"})
            parameters.emplace_back(name, torch::randn({33, 5}).to(device).requires_grad_(true));
        Optimizer optimizer(parameters, {.kind = kind, .weight_decay = 0.01, .fused = fused});
        for (int i = 0; i < 6; ++i) {
            optimizer.set_learning_rate(0.01 * (1 + i % 2));
            for (auto& [name, parameter] : parameters)
                parameter.mutable_grad() = torch::randn({33, 5}).to(device);
            torch::NoGradGuard no_gradients;
            optimizer.step(std::nullopt);
        }
        SelftestTrained out;
        for (auto& [name, parameter] : parameters)
            out.weights.push_back(parameter.detach().to(torch::kCPU, torch::kDouble));
        return out;
    };
    SelftestTrained right = run(torch::kCPU, true);
    double error = largest_difference(run(backend.device(), true), right);
    return check_within(std::fmax(error, largest_difference(run(backend.device(), false), right)),
                        2e-6);
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
    return {"", right, right ? "every loss at its step" : "wrong losses"};
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
    bool goes_on = std::isfinite(selftest_train(backend, {.count = 2}).losses.back());
    return {"", thrown && goes_on,
            fmt::format("{}, {}", thrown ? "was reported" : "was not reported",
                        goes_on ? "training continues" : "training does not continue")};
}

SelftestCheck check_marks(DeviceBackend& backend) {
    backend.mark_begin(7);
    (void)selftest_train(backend, {.count = 1});
    backend.mark_end(7);
    backend.synchronise();
    auto took = backend.step_ns(7);
    return {"", took && *took > 0,
            took ? fmt::format("{:.3g} ms", static_cast<double>(*took) / 1e6) : "it does not"};
}

SelftestCheck check_loss(DeviceBackend& backend, Precision precision, double allowed) {
    double whole = selftest_train(backend, {}).losses.back();
    double mixed = selftest_train(backend, {.settings = {.precision = precision}}).losses.back();
    return check_within(std::fabs(mixed - whole), allowed);
}

// Equal except that a GPU adds up in another order each time: a rounding of a gradient of 2^-9,
// times the rate. Using the weights of the step before would differ by ten times that.
SelftestCheck check_recomputed_bf16(DeviceBackend& backend) {
    SelftestSteps steps{.settings = {.precision = Precision::bf16}};
    SelftestTrained kept = selftest_train(backend, steps);
    steps.recomputes = true;
    return check_within(largest_difference(selftest_train(backend, steps), kept), 5e-4);
}

}  // namespace

// Mixed precision keeps 8 (bf16) or 11 bits (fp16) of the activations.
std::vector<SelftestItem> selftest_step_items(DeviceBackend& backend) {
    auto against_whole = [&backend](SelftestSteps steps) {
        return check_within(largest_difference(selftest_train(backend, std::move(steps)),
                                               selftest_train(backend, {})),
                            kSelftestAllowed);
    };
    std::vector<SelftestItem> items{
        {"a batch to the device and back", [&] { return check_upload(backend); }},
        {"two batches on their way at once", [&] { return check_two_uploads(backend); }},
        {"eight steps against plain double precision",
         [&] {
             return check_within(
                 largest_difference(selftest_train(backend, {}), selftest_train_plainly()),
                 kSelftestAllowed);
         }},
        {"four micro-batches against one batch", [=] { return against_whole({.split = 4}); }},
        {"accumulation over two batches against one",
         [=] {
             return against_whole({.batches = {10, 6}});
         }},
        {"channels last against channels first",
         [=] { return against_whole({.settings = {.channels_last = true}}); }},
        {"gradient checkpointing against kept activations",
         [=] { return against_whole({.recomputes = true}); }},
        {"... with bf16", [&] { return check_recomputed_bf16(backend); }},
        {"bf16 loss against fp32", [&] { return check_loss(backend, Precision::bf16, 0.02); }},
        {"fp16 loss with the scaler against fp32",
         [&] { return check_loss(backend, Precision::fp16, 0.005); }},
    };
    constexpr std::pair<const char*, OptimizerKind> kOptimizers[] = {
        {"AdamW", OptimizerKind::adamw},
        {"Adam", OptimizerKind::adam},
        {"SGD", OptimizerKind::sgd}};
    for (const auto& [name, kind] : kOptimizers)
        items.push_back({fmt::format("{}, fused and not, against the CPU", name),
                         [&backend, kind] { return check_optimizer(backend, kind); }});
    items.push_back({"losses read an interval late", [&] { return check_late_losses(backend); }});
    items.push_back({"the device reports its time", [&] { return check_marks(backend); }});
    items.push_back(
        {"training survives running out of memory", [&] { return check_out_of_memory(backend); }});
    return items;
}

}  // namespace saturate
