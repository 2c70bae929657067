// SPDX-License-Identifier: Apache-2.0
// A sample source for tests: each sample is its index, unless `on_write` throws.
#pragma once

#include <cstring>
#include <functional>
#include <string>

#include "pipeline/source.h"

namespace saturate {

class FakeSource final : public SampleSource {
  public:
    explicit FakeSource(std::int64_t size, std::function<void(std::int64_t)> on_write = {})
        : size_(size), on_write_(std::move(on_write)) {}

    [[nodiscard]] std::int64_t size() const override { return size_; }
    [[nodiscard]] const std::vector<FieldSpec>& fields() const override { return fields_; }
    [[nodiscard]] std::unique_ptr<Scratch> make_scratch() const override {
        return std::make_unique<Scratch>();
    }
    void write(const SampleDraw& draw, Scratch&, std::span<std::byte* const> places,
               SampleCost&) const override {
        if (on_write_) on_write_(draw.index);
        std::memcpy(places[0], &draw.index, sizeof draw.index);
    }
    [[nodiscard]] std::string name_of(std::int64_t index) const override {
        return "sample-" + std::to_string(index);
    }

  private:
    std::int64_t size_;
    std::function<void(std::int64_t)> on_write_;
    std::vector<FieldSpec> fields_ = {{.name = "index", .element = Element::int64}};
};

}  // namespace saturate
