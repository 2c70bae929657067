// SPDX-License-Identifier: Apache-2.0
#include "pipeline/array_source.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/error.h"

namespace saturate {

namespace {

template <typename From, typename To>
void convert_as(const std::byte* from, std::size_t count, std::byte* to) {
    for (std::size_t i = 0; i < count; ++i) {
        From value;
        std::memcpy(&value, from + i * sizeof(From), sizeof(From));
        To out = static_cast<To>(value);
        std::memcpy(to + i * sizeof(To), &out, sizeof(To));
    }
}

float from_half(std::uint16_t bits) {
    std::uint32_t sign = (bits & 0x8000u) << 16, exponent = (bits >> 10) & 31, part = bits & 1023;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | part << 13);
    if (exponent == 0) {
        float small = static_cast<float>(part) * 0x1.0p-24f;
        return sign ? -small : small;
    }
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | part << 13);
}

}  // namespace

Element element_of(NumberType type) {
    if (type.kind == 'f') return Element::float32;
    if (type.kind == 'b' || (type.kind == 'u' && type.bytes == 1)) return Element::uint8;
    return Element::int64;
}

void convert(NumberType type, const std::byte* from, std::size_t count, std::byte* to) {
    bool is_signed = type.kind == 'i';
    switch (type.kind == 'f' ? 10 * type.bytes : type.bytes) {
        case 40:
            std::memcpy(to, from, count * 4);
            break;
        case 80:
            convert_as<double, float>(from, count, to);
            break;
        case 20:
            for (std::size_t i = 0; i < count; ++i) {
                std::uint16_t bits = 0;
                std::memcpy(&bits, from + 2 * i, 2);
                float value = from_half(bits);
                std::memcpy(to + 4 * i, &value, 4);
            }
            break;
        case 1:
            if (is_signed)
                convert_as<std::int8_t, std::int64_t>(from, count, to);
            else
                std::memcpy(to, from, count);
            break;
        case 2:
            is_signed ? convert_as<std::int16_t, std::int64_t>(from, count, to)
                      : convert_as<std::uint16_t, std::int64_t>(from, count, to);
            break;
        case 4:
            is_signed ? convert_as<std::int32_t, std::int64_t>(from, count, to)
                      : convert_as<std::uint32_t, std::int64_t>(from, count, to);
            break;
        default:
            std::memcpy(to, from, count * 8);
            break;  // uint64 keeps its bits
    }
}

ArraySource::ArraySource(std::vector<NpyArray> arrays, std::string place)
    : arrays_(std::move(arrays)), place_(std::move(place)) {
    for (const NpyArray& array : arrays_) {
        if (array.shape.empty() || array.shape[0] != arrays_[0].shape[0])
            throw UserError(
                {.where = {place_},
                 .found = array.shape.empty()
                              ? fmt::format("{} is a single number", array.name)
                              : fmt::format("{} has {} samples, {} has {}", arrays_[0].name, size_,
                                            array.name, array.shape[0]),
                 .expected = "arrays whose first dimension is the sample",
                 .fix = ""});
        size_ = array.shape[0];
        FieldSpec field{.name = array.name,
                        .element = element_of(array.type),
                        .shape = {array.shape.begin() + 1, array.shape.end()}};
        sample_bytes_.push_back(field.bytes() / size_of(field.element) *
                                static_cast<std::size_t>(array.type.bytes));
        fields_.push_back(std::move(field));
    }
}

std::unique_ptr<Scratch> ArraySource::make_scratch() const { return std::make_unique<Scratch>(); }

void ArraySource::write(const SampleDraw& draw, Scratch&, std::span<std::byte* const> places,
                        SampleCost& cost) const {
    auto index = static_cast<std::size_t>(draw.index);
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
        const NpyArray& array = arrays_[i];
        convert(array.type, array.data.data() + index * sample_bytes_[i],
                sample_bytes_[i] / static_cast<std::size_t>(array.type.bytes), places[i]);
        cost.read_bytes += static_cast<std::int64_t>(sample_bytes_[i]);
    }
}

std::string ArraySource::name_of(std::int64_t index) const {
    return fmt::format("{}: sample {}", place_, index);
}

}  // namespace saturate
