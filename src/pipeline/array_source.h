// SPDX-License-Identifier: Apache-2.0
// A sample source over NumPy arrays. The first dimension is the sample; each array is a field.
// Floats become float32, bytes and booleans uint8, other integers int64.
#pragma once

#include <filesystem>

#include "pipeline/npy.h"
#include "pipeline/source.h"

namespace saturate {

class ArraySource final : public SampleSource {
  public:
    // Throws UserError if the arrays differ in their number of samples.
    ArraySource(std::vector<NpyArray> arrays, std::string place);

    [[nodiscard]] std::int64_t size() const override { return size_; }
    [[nodiscard]] const std::vector<FieldSpec>& fields() const override { return fields_; }
    [[nodiscard]] std::unique_ptr<Scratch> make_scratch() const override;
    void write(const SampleDraw& draw, Scratch& scratch, std::span<std::byte* const> places,
               SampleCost& cost) const override;
    [[nodiscard]] std::string name_of(std::int64_t index) const override;

  private:
    std::vector<NpyArray> arrays_;
    std::string place_;
    std::vector<FieldSpec> fields_;
    std::vector<std::size_t> sample_bytes_;  // in the array
    std::int64_t size_ = 0;
};

// element_of() gives the element type that numbers of `type` become; convert() converts them.
[[nodiscard]] Element element_of(NumberType type);
void convert(NumberType type, const std::byte* from, std::size_t count, std::byte* to);

}  // namespace saturate
