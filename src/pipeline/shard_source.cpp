// SPDX-License-Identifier: Apache-2.0
#include "pipeline/shard_source.h"

namespace saturate {

namespace {

class ShardSource final : public SampleSource {
  public:
    ShardSource(std::shared_ptr<const SampleSource> whole, const Shard& shard)
        : whole_(std::move(whole)),
          begin_(whole_->size() * shard.rank / shard.count),
          end_(whole_->size() * (shard.rank + 1) / shard.count) {}

    [[nodiscard]] std::int64_t size() const override { return end_ - begin_; }
    [[nodiscard]] const std::vector<FieldSpec>& fields() const override { return whole_->fields(); }
    [[nodiscard]] std::unique_ptr<Scratch> make_scratch() const override {
        return whole_->make_scratch();
    }
    void write(const SampleDraw& draw, Scratch& scratch, std::span<std::byte* const> places,
               SampleCost& cost) const override {
        whole_->write({draw.seed, draw.epoch, draw.index + begin_}, scratch, places, cost);
    }
    [[nodiscard]] std::string name_of(std::int64_t index) const override {
        return whole_->name_of(index + begin_);
    }
    [[nodiscard]] std::vector<std::string> notes() const override { return whole_->notes(); }

  private:
    std::shared_ptr<const SampleSource> whole_;
    std::int64_t begin_, end_;
};

}  // namespace

std::shared_ptr<const SampleSource> part_of_source(std::shared_ptr<const SampleSource> whole,
                                                   const Shard& shard) {
    return std::make_shared<ShardSource>(std::move(whole), shard);
}

}  // namespace saturate
