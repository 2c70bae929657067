// SPDX-License-Identifier: Apache-2.0
// Computes which sample is at which place of an epoch, as a function of (seed, epoch, place).
// Nothing is shuffled in memory, so an epoch of 100 million samples begins as fast as one of ten,
// and a number is enough to restore a position. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace saturate {

// One process of a data-parallel job. Every rank gets the same number of batches.
struct Shard {
    int rank = 0;
    int count = 1;
};

struct SampleOrderSettings {
    std::int64_t size = 0;        // samples of the source
    std::int64_t neighbours = 1;  // of the source: shuffle in runs of this many
    std::int64_t batch_size = 1;
    bool shuffle = true;
    bool drop_last = true;
    std::vector<double> weights = {};  // per sample: draw with replacement; empty: each once
    std::uint64_t seed = 0;
    Shard shard = {};
};

// A random order of one epoch: a permutation of [0, size) that needs no memory. A Feistel network
// over the next power of two; values outside [0, size) go through it again.
class EpochOrder {
  public:
    EpochOrder(std::int64_t size, std::uint64_t key);
    [[nodiscard]] std::int64_t at(std::int64_t place) const;

  private:
    static constexpr int kRoundsMax = 24;
    std::uint64_t size_;
    std::size_t rounds_;  // small halves have little randomness, so they need more rounds
    int right_bits_;
    std::uint64_t left_mask_, right_mask_;
    std::array<std::uint64_t, kRoundsMax> keys_;
};

// An epoch order that lets storage read long stretches: runs of neighbouring samples in random
// order, 64 of them interleaved, so that samples of one run are 64 places apart.
class RunOrder {
  public:
    RunOrder(std::int64_t size, std::int64_t run, std::uint64_t key);  // run 1: single samples
    [[nodiscard]] std::int64_t at(std::int64_t place) const;

  private:
    static constexpr std::int64_t kDealt = 64;
    std::int64_t run_, runs_, rest_;  // rest_: samples after the last full run
    EpochOrder order_;                // of the runs
    std::int64_t swapped_;            // the run whose first samples trade places with the rest
};

class SampleOrder {
  public:
    // Throws UserError if the settings give no batch or the weights are invalid.
    explicit SampleOrder(SampleOrderSettings settings);

    [[nodiscard]] std::int64_t batches_per_epoch() const { return batches_; }
    [[nodiscard]] std::int64_t batch_size(std::int64_t batch) const;  // the last may be smaller

    [[nodiscard]] RunOrder order(std::int64_t epoch) const;
    // Returns the sample at this rank's `place` in the epoch that `order` belongs to.
    [[nodiscard]] std::int64_t at(const RunOrder& order, std::int64_t epoch,
                                  std::int64_t place) const;
    // Number of samples that can be drawn: all except those of weight 0.
    [[nodiscard]] std::int64_t drawable() const { return drawable_; }
    // Returns a replacement for a bad sample. `attempt` counts from 1: random at first, then one
    // sample after the other, so that every drawable sample comes up eventually.
    [[nodiscard]] std::int64_t substitute(std::int64_t epoch, std::int64_t place,
                                          std::int64_t attempt) const;

  private:
    void build_alias_table();
    [[nodiscard]] std::int64_t draw(std::uint64_t bits, std::uint64_t more_bits) const;

    SampleOrderSettings settings_;
    std::int64_t samples_ = 0;  // of this rank in one epoch
    std::int64_t batches_ = 0;
    std::int64_t drawable_ = 0;
    std::vector<bool> weighs_;  // whether the weight is above 0; empty: all are
    // Walker's alias method: one lookup per weighted draw.
    std::vector<float> keep_;
    std::vector<std::int64_t> alias_;
};

}  // namespace saturate
