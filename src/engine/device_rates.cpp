// SPDX-License-Identifier: Apache-2.0
#include "engine/device_rates.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>

#include "base/cache_folder.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "engine/step.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[kRateKinds] = {"fp32", "tf32", "fp16", "bf16"};
constexpr int kTiny = 200;  // operators on a few numbers: time is all launching

// Mean device seconds of one `work`, after a warm-up.
std::optional<double> device_seconds(DeviceBackend& backend, int repeats,
                                     const std::function<void()>& work) {
    constexpr std::int64_t kMark = 0;  // read before it is reused
    for (int i = 0; i < 2; ++i) work();
    backend.synchronise();
    backend.mark_begin(kMark);
    for (int i = 0; i < repeats; ++i) work();
    backend.mark_end(kMark);
    backend.synchronise();
    auto took = backend.step_ns(kMark);
    if (!took || *took <= 0) return std::nullopt;
    return static_cast<double>(*took) / 1e9 / repeats;
}

std::optional<double> rate(double amount, const std::optional<double>& seconds) {
    return seconds ? std::optional(amount / *seconds) : std::nullopt;
}

// Leaves out types that the device cannot compute with.
void measure_products(DeviceBackend& backend, const RateEffort& effort, RateKind kind,
                      torch::ScalarType type, MeasuredRates& out) {
    auto options = torch::TensorOptions().dtype(type).device(backend.device());
    auto at = static_cast<std::size_t>(kind);
    try {
        std::int64_t n = effort.side;
        torch::Tensor a = torch::ones({n, n}, options), b = torch::ones({n, n}, options);
        torch::Tensor c = torch::empty({n, n}, options);
        auto side = static_cast<double>(n);
        out.matrix[at] =
            rate(2 * side * side * side,
                 device_seconds(backend, effort.repeats, [&] { torch::matmul_out(c, a, b); }));
        std::int64_t channels = n / 32, picture = 56;
        torch::Tensor x = as_channels_last(torch::ones({16, channels, picture, picture}, options));
        torch::Tensor w = as_channels_last(torch::ones({channels, channels, 3, 3}, options));
        double flops = 2.0 * 16 * 9 * static_cast<double>(channels * channels * picture * picture);
        out.convolution[at] =
            rate(flops, device_seconds(backend, effort.repeats, [&] {
                     (void)torch::conv2d(x, w, torch::Tensor(), 1, torch::IntArrayRef{1, 1});
                 }));
    } catch (const c10::Error&) {
        out.matrix[at] = out.convolution[at] = std::nullopt;
    }
}

void measure_memory(DeviceBackend& backend, const RateEffort& effort, MeasuredRates& out) {
    auto options = torch::TensorOptions().device(backend.device());
    std::int64_t count = effort.side * effort.side * 4;
    torch::Tensor a = torch::ones({count}, options), b = torch::ones({count}, options);
    out.memory_bytes_per_second = rate(12.0 * static_cast<double>(count),
                                       device_seconds(backend, effort.repeats, [&] { a.add_(b); }));

    torch::Tensor few = torch::ones({8}, options);
    auto many = [&] {
        for (int i = 0; i < kTiny; ++i) few.add_(1);
    };
    backend.run_apart(many);
    backend.synchronise();
    std::int64_t begin = now_ns();
    many();
    out.launch_seconds = static_cast<double>(now_ns() - begin) / 1e9 / kTiny;
    backend.synchronise();
    if (backend.proves().capture) {  // without the host's launches in between
        auto captured = backend.capture(many);
        if (auto seconds = device_seconds(backend, 5, [&] { captured->replay(); }))
            out.kernel_seconds = *seconds / kTiny;
    }
}

void measure_copy(DeviceBackend& backend, const RateEffort& effort, MeasuredRates& out) {
    if (backend.uploads_ahead() == 0) return;  // no copies on this device
    FieldSpec spec{.name = "x", .element = Element::float32, .shape = {effort.side}};
    std::size_t bytes = spec.bytes() * static_cast<std::size_t>(effort.side);
    auto memory = backend.slab_memory() ? backend.slab_memory() : ordinary_memory();
    std::shared_ptr<void> slab(memory->allocate(bytes),
                               [memory, bytes](void* held) { memory->release(held, bytes); });
    FieldView field{&spec, static_cast<std::byte*>(slab.get())};
    auto copy = [&] {
        backend.await_upload(
            backend.start_upload({.size = effort.side, .fields = {&field, 1}, .slab = slab}));
    };
    copy();
    backend.synchronise();
    std::int64_t begin = now_ns();
    for (int i = 0; i < effort.repeats; ++i) copy();
    backend.synchronise();
    out.copy_bytes_per_second =
        static_cast<double>(bytes) * effort.repeats * 1e9 / static_cast<double>(now_ns() - begin);
}

fs::path rates_file(const std::string& card) {
    std::string name;
    for (char c : card) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '-';
    return user_cache_folder() / "rates" / (name + ".json");
}

}  // namespace

MeasuredRates measure_rates(const OpenDevice& open, const RateEffort& effort) {
    torch::NoGradGuard no_gradients;
    MeasuredRates out;
    {
        auto backend = open({.tf32 = false});
        measure_products(*backend, effort, RateKind::fp32, torch::kFloat, out);
        measure_products(*backend, effort, RateKind::fp16, torch::kHalf, out);
        measure_products(*backend, effort, RateKind::bf16, torch::kBFloat16, out);
        measure_memory(*backend, effort, out);
        measure_copy(*backend, effort, out);
        if (backend->device().is_cpu()) return out;
    }
    auto backend = open({.tf32 = true});
    measure_products(*backend, effort, RateKind::tf32, torch::kFloat, out);
    return out;
}

Json rates_json(const MeasuredRates& rates) {
    Json matrix = Json::object({}), convolution = Json::object({});
    for (std::size_t i = 0; i < kRateKinds; ++i) {
        matrix.set(kNames[i], rates.matrix[i]);
        convolution.set(kNames[i], rates.convolution[i]);
    }
    return Json::object({{"matrix_flops_per_second", matrix},
                         {"convolution_flops_per_second", convolution},
                         {"memory_bytes_per_second", rates.memory_bytes_per_second},
                         {"kernel_seconds", rates.kernel_seconds},
                         {"launch_seconds", rates.launch_seconds},
                         {"copy_bytes_per_second", rates.copy_bytes_per_second}});
}

MeasuredRates rates_of(const Json& json) {
    auto positive = [](const Json& value) {
        auto number = value.number();
        return number && *number > 0 ? number : std::nullopt;
    };
    MeasuredRates out{.memory_bytes_per_second = positive(json["memory_bytes_per_second"]),
                      .kernel_seconds = positive(json["kernel_seconds"]),
                      .launch_seconds = positive(json["launch_seconds"]),
                      .copy_bytes_per_second = positive(json["copy_bytes_per_second"])};
    for (std::size_t i = 0; i < kRateKinds; ++i) {
        out.matrix[i] = positive(json["matrix_flops_per_second"][kNames[i]]);
        out.convolution[i] = positive(json["convolution_flops_per_second"][kNames[i]]);
    }
    return out;
}

MeasuredRates find_rates(const std::string& card) {
    std::string text = read_if_there(rates_file(card));
    if (text.empty()) return {};
    try {
        Json json = Json::parse(text, "");
        if (json["schema"].integer() != 1 || json["card"].string() != card) return {};
        return rates_of(json["rates"]);
    } catch (const UserError&) {
        return {};
    }
}

std::string keep_rates(const std::string& card, const MeasuredRates& rates) {
    fs::path file = rates_file(card);
    std::error_code error;
    fs::create_directories(file.parent_path(), error);
    Json json = Json::object({{"schema", 1}, {"card", card}, {"rates", rates_json(rates)}});
    write_file_whole(file, json.pretty() + "\n");
    return file.string();
}

}  // namespace saturate
