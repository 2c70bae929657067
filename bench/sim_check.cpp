// SPDX-License-Identifier: Apache-2.0
// The seconds that the simulated device gives to single operators, for bench/sim_check: on stdin
// one per line, separated by tabs: GPU, capability (7.0), memory in bytes, class, precision, tf32,
// channels_last, operations, bytes. On stdout its seconds, or the word "unknown" for a GPU that is
// not in the table.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "base/text.h"
#include "engine/sim_model.h"

using namespace saturate;

namespace {

OpClass class_of(std::string_view name) {
    if (name == "matrix") return OpClass::matrix;
    if (name == "convolution") return OpClass::convolution;
    return OpClass::elementwise;
}

std::optional<Capability> capability_of(std::string_view text) {
    std::vector<std::string_view> parts = split(text, '.');
    if (parts.size() != 2) return std::nullopt;
    auto major = parse_integer(parts[0]), minor = parse_integer(parts[1]);
    if (!major || !minor) return std::nullopt;
    return Capability{static_cast<int>(*major), static_cast<int>(*minor)};
}

Precision precision_of(std::string_view name) {
    if (name == "bf16") return Precision::bf16;
    return name == "fp16" ? Precision::fp16 : Precision::fp32;
}

}  // namespace

int main() {
    std::string line;
    while (std::getline(std::cin, line)) {
        std::vector<std::string_view> field = split(line, '\t');
        if (field.size() != 9) {
            std::fprintf(stderr, "error: a line with %zu fields, expected 9\n", field.size());
            return 2;
        }
        auto memory = static_cast<std::uint64_t>(parse_number(field[2]).value_or(0));
        auto match = match_gpu(field[0], capability_of(field[1]), memory);
        if (!match) {
            std::puts("unknown");
            continue;
        }
        StepCost cost;
        cost.ops.push_back({.name = "one",
                            .kind = class_of(field[3]),
                            .flops_fixed = parse_number(field[7]).value_or(0),
                            .bytes_fixed = parse_number(field[8]).value_or(0)});
        SimSettings settings{.precision = precision_of(field[4]),
                             .tf32 = field[5] == "1",
                             .channels_last = field[6] == "1"};
        std::printf("%.9g\n", simulate_step(cost, match->facts, settings, 0).device_seconds);
    }
    return 0;
}
