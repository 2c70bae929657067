// SPDX-License-Identifier: Apache-2.0
#include "pipeline/open.h"
#include "pipeline/random.h"

namespace saturate {

namespace {

constexpr std::int64_t kPeriod = 10;
constexpr std::uint64_t kSplitPurpose = 0x73706c6974;

// Some samples of another source. Random draws use the sample's index in that source.
class PartSource final : public SampleSource {
  public:
    PartSource(std::shared_ptr<const SampleSource> whole, bool each_tenth)
        : whole_(std::move(whole)), each_tenth_(each_tenth) {
        std::int64_t tenths = whole_->size() / kPeriod;
        size_ = each_tenth ? tenths : whole_->size() - tenths;
    }
    [[nodiscard]] std::int64_t size() const override { return size_; }
    [[nodiscard]] const std::vector<FieldSpec>& fields() const override { return whole_->fields(); }
    [[nodiscard]] std::unique_ptr<Scratch> make_scratch() const override {
        return whole_->make_scratch();
    }
    void write(const SampleDraw& draw, Scratch& scratch, std::span<std::byte* const> places,
               SampleCost& cost) const override {
        whole_->write({.seed = draw.seed, .epoch = draw.epoch, .index = of_whole(draw.index)},
                      scratch, places, cost);
    }
    [[nodiscard]] std::int64_t neighbours() const override {
        return each_tenth_ ? 1 : whole_->neighbours();
    }
    [[nodiscard]] std::string name_of(std::int64_t index) const override {
        return whole_->name_of(of_whole(index));
    }
    [[nodiscard]] std::vector<std::string> notes() const override { return whole_->notes(); }

  private:
    // One of every ten, at a random place within each ten, because labels may
    // alternate or be sorted.
    [[nodiscard]] std::int64_t of_whole(std::int64_t index) const {
        if (each_tenth_) return index * kPeriod + chosen(index);
        std::int64_t ten = index / (kPeriod - 1), place = index % (kPeriod - 1);
        if (ten >= whole_->size() / kPeriod) return index + whole_->size() / kPeriod;  // the rest
        return ten * kPeriod + place + (place >= chosen(ten) ? 1 : 0);
    }
    [[nodiscard]] static std::int64_t chosen(std::int64_t ten) {
        return below(mix(kSplitPurpose, static_cast<std::uint64_t>(ten)), kPeriod);
    }

    std::shared_ptr<const SampleSource> whole_;
    bool each_tenth_;
    std::int64_t size_;
};

}  // namespace

std::shared_ptr<const SampleSource> all_but_each_tenth(std::shared_ptr<const SampleSource> source) {
    return std::make_shared<PartSource>(std::move(source), false);
}

std::shared_ptr<const SampleSource> each_tenth(std::shared_ptr<const SampleSource> source) {
    return std::make_shared<PartSource>(std::move(source), true);
}

}  // namespace saturate
