// SPDX-License-Identifier: Apache-2.0
// A source with computed samples: any fields, any number, values from (seed, epoch, index). For
// tests and examples, and to measure a loader without storage.
#pragma once

#include "pipeline/source.h"

namespace saturate {

struct SyntheticSettings {
    std::int64_t size = 1000;
    std::vector<FieldSpec> fields = {{.name = "value", .shape = {16}}};
    std::int64_t spin_ns = 0;  // minimum CPU time per sample
};

class SyntheticSource final : public SampleSource {
  public:
    explicit SyntheticSource(SyntheticSettings settings) : settings_(std::move(settings)) {}

    [[nodiscard]] std::int64_t size() const override { return settings_.size; }
    [[nodiscard]] const std::vector<FieldSpec>& fields() const override { return settings_.fields; }
    [[nodiscard]] std::unique_ptr<Scratch> make_scratch() const override;
    void write(const SampleDraw& draw, Scratch& scratch, std::span<std::byte* const> places,
               SampleCost& cost) const override;
    [[nodiscard]] std::string name_of(std::int64_t index) const override;

  private:
    SyntheticSettings settings_;
};

}  // namespace saturate
