// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sample_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "pipeline/random.h"

namespace saturate {

namespace {

// Make random draws for different purposes independent.
constexpr std::uint64_t kOrderPurpose = 0x6f72646572;
constexpr std::uint64_t kWeightPurpose = 0x776569676874;
constexpr std::uint64_t kSubstitutePurpose = 0x737562;
constexpr std::int64_t kRandomAttempts = 256;  // of a substitute

std::uint64_t round_function(std::uint64_t half, std::uint64_t key) {
    std::uint64_t h = (half ^ key) * 0x9E3779B97F4A7C15u;
    h ^= h >> 32;
    h *= 0xD6E8FEB86659FD93u;
    return h >> 32;
}

}  // namespace

EpochOrder::EpochOrder(std::int64_t size, std::uint64_t key)
    : size_(static_cast<std::uint64_t>(size)) {
    int bits = std::max(2, static_cast<int>(std::bit_width(size_ - 1)));
    right_bits_ = bits - bits / 2;
    left_mask_ = (std::uint64_t{1} << (bits / 2)) - 1;
    right_mask_ = (std::uint64_t{1} << right_bits_) - 1;
    rounds_ = bits <= 8 ? kRoundsMax : bits <= 16 ? 12 : 6;
    for (std::size_t i = 0; i < rounds_; ++i) keys_[i] = mix(key, i);
}

std::int64_t EpochOrder::at(std::int64_t place) const {
    auto x = static_cast<std::uint64_t>(place);
    do {
        std::uint64_t left = x >> right_bits_, right = x & right_mask_;
        for (std::size_t i = 0; i < rounds_; i += 2) {
            left ^= round_function(right, keys_[i]) & left_mask_;
            right ^= round_function(left, keys_[i + 1]) & right_mask_;
        }
        x = left << right_bits_ | right;
    } while (x >= size_);
    return static_cast<std::int64_t>(x);
}

RunOrder::RunOrder(std::int64_t size, std::int64_t run, std::uint64_t key)
    : run_(size < 2 * run ? 1 : run),
      runs_(size / run_),
      rest_(size % run_),
      order_(runs_, key),
      swapped_(below(mix(key), runs_)) {}

std::int64_t RunOrder::at(std::int64_t place) const {
    if (run_ == 1) return order_.at(place);
    std::int64_t whole = runs_ * run_;
    // Without this exchange the rest would always end the epoch, where drop_last cuts it off.
    if (place >= whole) return swapped_ * run_ + place - whole;
    std::int64_t first = place / (kDealt * run_) * kDealt;  // run of this deal
    std::int64_t dealt = std::min(kDealt, runs_ - first);
    std::int64_t turn = (place - first * run_) / dealt, seat = (place - first * run_) % dealt;
    std::int64_t run = order_.at(first + seat);
    return run == swapped_ && turn < rest_ ? whole + turn : run * run_ + turn;
}

SampleOrder::SampleOrder(SampleOrderSettings settings) : settings_(std::move(settings)) {
    const SampleOrderSettings& s = settings_;
    SATURATE_CHECK(s.batch_size > 0, "a batch has samples");
    SATURATE_CHECK(s.shard.count > 0 && s.shard.rank >= 0 && s.shard.rank < s.shard.count,
                   "the rank is one of the shards");
    if (s.size <= 0)
        throw UserError({.where = {},
                         .found = "the data contains no samples",
                         .expected = "at least one batch",
                         .fix = "check the path of the data"});
    // Equal on every rank: the remainder is dropped, or filled up from the start of the epoch.
    std::int64_t count = s.shard.count;
    samples_ = s.drop_last ? s.size / count : (s.size + count - 1) / count;
    batches_ = s.drop_last ? samples_ / s.batch_size : (samples_ + s.batch_size - 1) / s.batch_size;
    if (batches_ == 0)
        throw UserError(
            {.where = {},
             .found = fmt::format("{} samples on {} process{} are not enough for a batch of {}",
                                  s.size, count, count == 1 ? "" : "es", s.batch_size),
             .expected =
                 fmt::format("a batch size of at most {}", std::max<std::int64_t>(samples_, 1)),
             .fix = "a smaller batch_size, or drop_last: false"});
    drawable_ = s.size;
    if (!s.weights.empty()) build_alias_table();
}

std::int64_t SampleOrder::batch_size(std::int64_t batch) const {
    return std::min(settings_.batch_size, samples_ - batch * settings_.batch_size);
}

RunOrder SampleOrder::order(std::int64_t epoch) const {
    return {settings_.size, settings_.neighbours,
            mix(mix(settings_.seed, kOrderPurpose), static_cast<std::uint64_t>(epoch))};
}

std::int64_t SampleOrder::at(const RunOrder& order, std::int64_t epoch, std::int64_t place) const {
    std::int64_t global = place * settings_.shard.count + settings_.shard.rank;
    if (!keep_.empty()) {
        std::uint64_t bits =
            mix(mix(mix(settings_.seed, kWeightPurpose), static_cast<std::uint64_t>(epoch)),
                static_cast<std::uint64_t>(global));
        return draw(bits, mix(bits));
    }
    if (global >= settings_.size) global %= settings_.size;
    return settings_.shuffle ? order.at(global) : global;
}

std::int64_t SampleOrder::substitute(std::int64_t epoch, std::int64_t place,
                                     std::int64_t attempt) const {
    std::int64_t global = place * settings_.shard.count + settings_.shard.rank;
    std::uint64_t bits =
        mix(mix(settings_.seed, kSubstitutePurpose), static_cast<std::uint64_t>(epoch));
    bits = mix(mix(bits, static_cast<std::uint64_t>(global)), static_cast<std::uint64_t>(attempt));
    if (attempt <= kRandomAttempts)
        return keep_.empty() ? below(bits, settings_.size) : draw(bits, mix(bits));
    std::int64_t index = (global + attempt) % settings_.size;
    while (!weighs_.empty() && !weighs_[static_cast<std::size_t>(index)])
        index = (index + 1) % settings_.size;
    return index;
}

std::int64_t SampleOrder::draw(std::uint64_t bits, std::uint64_t more_bits) const {
    std::int64_t slot = below(bits, settings_.size);
    auto i = static_cast<std::size_t>(slot);
    return unit(more_bits) < static_cast<double>(keep_[i]) ? slot : alias_[i];
}

void SampleOrder::build_alias_table() {
    const std::vector<double>& weights = settings_.weights;
    auto n = static_cast<std::size_t>(settings_.size);
    double sum = 0;
    for (double weight : weights) sum += weight;
    bool usable = std::ranges::all_of(weights, [](double w) { return w >= 0 && std::isfinite(w); });
    if (weights.size() != n || !usable || !(sum > 0) || !std::isfinite(sum))
        throw UserError({.where = {},
                         .found = fmt::format("{} weights for {} samples", weights.size(), n),
                         .expected = "one per sample, none negative, at least one above 0",
                         .fix = ""});
    keep_.assign(n, 1.0f);
    alias_.resize(n);
    std::vector<double> share(n);
    std::vector<std::size_t> small, large;
    for (std::size_t i = 0; i < n; ++i) {
        share[i] = weights[i] / sum * static_cast<double>(n);
        alias_[i] = static_cast<std::int64_t>(i);
        (share[i] < 1 ? small : large).push_back(i);
    }
    while (!small.empty() && !large.empty()) {
        std::size_t poor = small.back(), rich = large.back();
        small.pop_back();
        keep_[poor] = static_cast<float>(share[poor]);
        alias_[poor] = static_cast<std::int64_t>(rich);
        share[rich] -= 1 - share[poor];
        if (share[rich] < 1) {
            large.pop_back();
            small.push_back(rich);
        }
    }
    // Rounding may leave a sample of weight 0 without a partner, but it must never be drawn.
    auto heaviest = std::ranges::max_element(weights) - weights.begin();
    for (std::size_t i : small) {
        if (weights[i] > 0) continue;
        keep_[i] = 0;
        alias_[i] = heaviest;
    }
    drawable_ = std::ranges::count_if(weights, [](double weight) { return weight > 0; });
    for (double weight : weights) weighs_.push_back(weight > 0);
    settings_.weights = {};  // replaced by the table
}

}  // namespace saturate
