// SPDX-License-Identifier: Apache-2.0
// Sample sources: a folder of images, tar shards, arrays, windows of a table. A source knows its
// number of samples and writes one of them into the memory it is given. write() is called from many
// worker threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "pipeline/batch.h"

namespace saturate {

// Seeds the randomness of one sample by (seed, epoch, index): the same for any number of workers.
struct SampleDraw {
    std::uint64_t seed = 0;
    std::int64_t epoch = 0;
    std::int64_t index = 0;
};

// An unusable sample. It is replaced, counted and named, up to a limit.
class BadSample : public std::runtime_error {
  public:
    BadSample(std::string sample, const std::string& why)
        : std::runtime_error(why), sample_(std::move(sample)) {}
    [[nodiscard]] const std::string& sample() const { return sample_; }  // e.g. its path

  private:
    std::string sample_;
};

// Storage failed but may answer next time (EIO, ESTALE, a timeout). The sample is tried again after
// a pause and becomes a bad sample if it keeps failing.
class BusySample : public BadSample {
  public:
    using BadSample::BadSample;
};

// The cost of one write(). The loader adds them up.
struct SampleCost {
    std::int64_t read_ns = 0;
    std::int64_t decode_ns = 0;
    std::int64_t transform_ns = 0;
    std::int64_t read_bytes = 0;
    std::int64_t cache_hits = 0;
};

// Memory of one worker thread, so that decoding allocates nothing once warmed up.
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
    // How many consecutive samples are neighbours in storage and best read one after the other.
    [[nodiscard]] virtual std::int64_t neighbours() const { return 1; }
    // The sample's name in messages, e.g. the path of its file.
    [[nodiscard]] virtual std::string name_of(std::int64_t index) const = 0;
    // Notes for the user about how the data was read: missing cells, columns left out. One line
    // each, shown before training.
    [[nodiscard]] virtual std::vector<std::string> notes() const { return {}; }
};

// A source whose work has a part that is the same in every epoch (reading, decoding) and can be
// cached, and a part that is not (random crops). write() is prepare() followed by finish().
class CacheableSource : public SampleSource {
  public:
    // Fills `prepared` with data that does not depend on the epoch, e.g. decoded
    // pixels and their size.
    virtual void prepare(std::int64_t index, Scratch& scratch, std::vector<std::byte>& prepared,
                         SampleCost& cost) const = 0;
    // Does the rest of write(). Throws BadSample.
    virtual void finish(const SampleDraw& draw, std::span<const std::byte> prepared,
                        Scratch& scratch, std::span<std::byte* const> places,
                        SampleCost& cost) const = 0;
    // Identifies everything that prepare()'s bytes depend on: the files with their sizes and times,
    // the decode settings, the version of the code. A cache with another identity is not used.
    [[nodiscard]] virtual std::string identity() const = 0;
};

}  // namespace saturate
