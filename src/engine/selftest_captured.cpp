// SPDX-License-Identifier: Apache-2.0
// Compares the captured step with the plain step. A device that cannot capture runs the same list
// without capturing, so that the list itself is tested everywhere.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "engine/selftest.h"
#include "engine/selftest_net.h"

namespace saturate {

namespace {

constexpr const char* kSaid = "the step is captured as one graph";

bool said(const SelftestTrained& trained, std::string_view start) {
    return std::ranges::any_of(trained.notes,
                               [&](const std::string& note) { return note.starts_with(start); });
}

// `expected`: how a note must begin if the device captures.
SelftestCheck compare(DeviceBackend& backend, SelftestSteps steps, double allowed,
                      const char* expected = kSaid) {
    SelftestSteps plain = steps;
    plain.at_loss = nullptr;
    SelftestTrained itself = selftest_train(backend, plain);
    steps.settings.capture = true;
    SelftestTrained captured = selftest_train(backend, steps);
    SelftestCheck check = check_within(largest_difference(captured, itself), allowed);
    if (!backend.proves().capture) {
        check.detail += "; this device captures nothing";
        return check;
    }
    check.passed = check.passed && said(captured, expected);
    check.detail += "; " + join(captured.notes, "; ");
    return check;
}

SelftestCheck check_dropout(DeviceBackend& backend) {
    SelftestSteps steps{.settings = {.capture = true}, .rate = 0, .dropout = 0.5};
    SelftestTrained trained = selftest_train(backend, steps);
    // Without updates, the losses of one batch differ only through the dropped units.
    std::set<double> losses(trained.losses.begin(), trained.losses.end());
    bool passed = losses.size() == trained.losses.size() &&
                  (!backend.proves().capture || said(trained, kSaid));
    return {"", passed,
            fmt::format("{} steps, {} different losses", trained.losses.size(), losses.size())};
}

void run_out_of_memory(const torch::Device& device) {
    (void)torch::empty({std::int64_t{1} << 50},
                       torch::TensorOptions().dtype(torch::kByte).device(device));
}

// Runs out of memory during the warm-up or during the capture, depending on `at`.
SelftestCheck check_memory(DeviceBackend& backend, std::int64_t at) {
    SelftestSteps steps;
    steps.at_loss = [&backend, at](std::int64_t number) {
        if (number == at) run_out_of_memory(backend.device());
    };
    return compare(backend, steps, kSelftestAllowed,
                   "the step is no longer captured: its micro-batch changed");
}

SelftestCheck check_failure(DeviceBackend& backend) {
    SelftestSteps steps;
    steps.at_loss = [&backend](std::int64_t) {
        (void)torch::ones({}, backend.device()).item();  // reads a value back
    };
    return compare(backend, steps, kSelftestAllowed,
                   "the step cannot be captured and runs without a graph");
}

}  // namespace

// fp16: on a GPU another order of summation shows as a rounding of 2^-11 of a
// gradient, times the rate.
std::vector<SelftestItem> selftest_captured_items(DeviceBackend& backend) {
    auto with = [&backend](SelftestSteps steps, double allowed = kSelftestAllowed) {
        return [&backend, steps, allowed] { return compare(backend, steps, allowed); };
    };
    constexpr double kHalf = 2e-3;
    return {
        {"a captured step against the step itself", with({})},
        {"... with the scaler of fp16", with({.settings = {.precision = Precision::fp16}}, kHalf)},
        {"... with bf16", with({.settings = {.precision = Precision::bf16}}, 10 * kHalf)},
        {"... with gradients clipped", with({.settings = {.grad_clip = 0.1}})},
        {"... with accumulation", with({.batches = {10, 6}})},
        {"... with a learning rate that changes", with({.rate_changes = true})},
        {"... with gradient checkpointing", with({.recomputes = true})},
        {"... with a short step between", with({.short_step = 6})},
        {"... with dropout: other units each time", [&] { return check_dropout(backend); }},
        {"... that cannot be captured", [&] { return check_failure(backend); }},
        {"... out of memory in its warm-up", [&] { return check_memory(backend, 1); }},
        {"... out of memory in its capture", [&] { return check_memory(backend, 3); }},
    };
}

}  // namespace saturate
