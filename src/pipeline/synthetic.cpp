// SPDX-License-Identifier: Apache-2.0
#include "pipeline/synthetic.h"

#include <fmt/format.h>
#include <time.h>

#include <cstring>

#include "pipeline/random.h"

namespace saturate {

namespace {

std::int64_t thread_cpu_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void write_value(Element element, std::uint64_t bits, std::byte* to) {
    auto number = static_cast<float>(2 * unit(bits) - 1);  // [-1, 1)
    switch (element) {
        case Element::uint8:
            *to = static_cast<std::byte>(bits >> 56);
            break;
        case Element::int64: {
            auto value = static_cast<std::int64_t>(bits >> 54);  // 0 to 1023
            std::memcpy(to, &value, sizeof value);
            break;
        }
        case Element::float32:
            std::memcpy(to, &number, sizeof number);
            break;
        case Element::bfloat16: {
            std::uint32_t whole = 0;
            std::memcpy(&whole, &number, sizeof whole);
            auto half = static_cast<std::uint16_t>(whole >> 16);
            std::memcpy(to, &half, sizeof half);
            break;
        }
    }
}

}  // namespace

std::unique_ptr<Scratch> SyntheticSource::make_scratch() const {
    return std::make_unique<Scratch>();
}

void SyntheticSource::write(const SampleDraw& draw, Scratch&, std::span<std::byte* const> places,
                            SampleCost& cost) const {
    std::int64_t start_ns = settings_.spin_ns > 0 ? thread_cpu_ns() : 0;
    std::uint64_t key = mix(mix(draw.seed, static_cast<std::uint64_t>(draw.epoch)),
                            static_cast<std::uint64_t>(draw.index));
    for (std::size_t i = 0; i < places.size(); ++i) {
        const FieldSpec& field = settings_.fields[i];
        std::size_t step = size_of(field.element), bytes = field.bytes();
        for (std::size_t at = 0; at < bytes; at += step)
            write_value(field.element, mix(key, i << 56 | at), places[i] + at);
    }
    if (settings_.spin_ns == 0) return;
    while (thread_cpu_ns() - start_ns < settings_.spin_ns) {
    }
    cost.transform_ns += settings_.spin_ns;
}

std::string SyntheticSource::name_of(std::int64_t index) const {
    return fmt::format("synthetic sample {}", index);
}

}  // namespace saturate
