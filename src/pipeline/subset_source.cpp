// SPDX-License-Identifier: Apache-2.0
#include "pipeline/subset_source.h"

#include <fmt/format.h>

#include "base/error.h"

namespace saturate {

namespace {

class SubsetSource final : public SampleSource {
  public:
    SubsetSource(std::shared_ptr<const SampleSource> whole, std::vector<std::int64_t> indices)
        : whole_(std::move(whole)), indices_(std::move(indices)) {}

    [[nodiscard]] std::int64_t size() const override {
        return static_cast<std::int64_t>(indices_.size());
    }
    [[nodiscard]] const std::vector<FieldSpec>& fields() const override { return whole_->fields(); }
    [[nodiscard]] std::unique_ptr<Scratch> make_scratch() const override {
        return whole_->make_scratch();
    }
    void write(const SampleDraw& draw, Scratch& scratch, std::span<std::byte* const> places,
               SampleCost& cost) const override {
        whole_->write({draw.seed, draw.epoch, of_whole(draw.index)}, scratch, places, cost);
    }
    [[nodiscard]] std::string name_of(std::int64_t index) const override {
        return whole_->name_of(of_whole(index));
    }
    [[nodiscard]] std::vector<std::string> notes() const override { return whole_->notes(); }

  private:
    [[nodiscard]] std::int64_t of_whole(std::int64_t index) const {
        return indices_[static_cast<std::size_t>(index)];
    }

    std::shared_ptr<const SampleSource> whole_;
    std::vector<std::int64_t> indices_;
};

}  // namespace

std::shared_ptr<const SampleSource> subset_of_source(std::shared_ptr<const SampleSource> whole,
                                                     std::vector<std::int64_t> indices) {
    for (std::int64_t index : indices) {
        if (index < 0 || index >= whole->size())
            throw UserError({.found = fmt::format("sample {} of a subset", index),
                             .expected = fmt::format("0 to {}", whole->size() - 1)});
    }
    return std::make_shared<SubsetSource>(std::move(whole), std::move(indices));
}

}  // namespace saturate
