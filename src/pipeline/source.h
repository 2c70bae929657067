// SPDX-License-Identifier: Apache-2.0
// Where samples come from: a folder of images, tar shards, arrays, windows of a table. A source
// knows how many samples there are and writes one of them into the memory it is given.
// write() is called from many worker threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/batch.h"

namespace saturate {

// Randomness of one sample, from (seed, epoch, index) alone: the same for any number of workers.
struct SampleDraw {
    std::uint64_t seed = 0;
    std::int64_t epoch = 0;
    std::int64_t index = 0;
};

// A sample that cannot be used: skipped, counted and named, up to a limit.
class BadSample : public std::runtime_error {
  public:
    BadSample(std::string sample, const std::string& why)
        : std::runtime_error(why), sample_(std::move(sample)) {}
    [[nodiscard]] const std::string& sample() const { return sample_; }  // e.g. its path

  private:
    std::string sample_;
};

// What one write() cost; added up by the loader.
struct SampleCost {
    std::int64_t read_ns = 0;
    std::int64_t decode_ns = 0;
    std::int64_t transform_ns = 0;
    std::int64_t read_bytes = 0;
};

// Memory of one worker thread, so that decoding allocates nothing in steady state.
class Scratch {
  public:
    virtual ~Scratch() = default;
};

class SampleSource {
  public:
    virtual ~SampleSource() = default;
    [[nodiscard]] virtual std::int64_t size() const = 0;
    [[nodiscard]] virtual const std::vector<FieldSpec>& fields() const = 0;
    [[nodiscard]] virtual std::unique_ptr<Scratch> make_scratch() const = 0;
    // Writes the sample's fields, in the order of fields(), to `places`. Throws BadSample.
    virtual void write(const SampleDraw& draw, Scratch& scratch, std::span<std::byte* const> places,
                       SampleCost& cost) const = 0;
    // For messages, e.g. the path of the file.
    [[nodiscard]] virtual std::string name_of(std::int64_t index) const = 0;
};

}  // namespace saturate
