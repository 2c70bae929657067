// SPDX-License-Identifier: Apache-2.0
#include "pipeline/tar_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "pipeline/image_stage.h"
#include "pipeline/sample_file.h"
#include "pipeline/tar_index.h"

namespace saturate {

namespace {

constexpr std::int64_t kNeighbours = 32;

struct ShardPart {  // of a shard
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
};

struct Sample {
    ShardPart image, label;  // size 0: none
    std::uint64_t name = 0;  // offset of the image's name in `names`
    std::uint32_t shard = 0;
};

struct ShardSamples {
    std::vector<Sample> samples;
    std::string names;  // each ends with NUL
};

struct TarScratch final : Scratch {
    explicit TarScratch(const ImageTransform& transform) : stage(transform) {}
    ImageStage stage;
    Buffer<std::uint8_t> bytes;
};

// Splits "dir/000123.jpg" into "dir/000123" and "jpg"; the ending of "a.seg.png" is "seg.png".
std::pair<std::string_view, std::string> split_name(std::string_view name) {
    std::size_t slash = name.rfind('/');
    std::size_t dot = name.find('.', slash == std::string_view::npos ? 0 : slash + 1);
    if (dot == std::string_view::npos) return {name, ""};
    return {name.substr(0, dot), lower(name.substr(dot + 1))};
}

bool is_image(const std::string& ending) {
    return ending == "jpg" || ending == "jpeg" || ending == "png" || ending == "webp";
}

ShardSamples read_shard(const std::filesystem::path& path, std::uint32_t number) {
    ShardSamples shard;
    std::string stem;
    for (const TarEntry& entry : index_tar(path)) {
        auto [own_stem, ending] = split_name(entry.name);
        if (!is_image(ending) && ending != "cls") continue;
        if (shard.samples.empty() || own_stem != stem) {
            stem = own_stem;
            shard.samples.push_back({{}, {}, shard.names.size(), number});
            shard.names.append(entry.name).push_back('\0');
        }
        (ending == "cls" ? shard.samples.back().label : shard.samples.back().image) = {entry.offset,
                                                                                       entry.size};
    }
    return shard;
}

}  // namespace

struct TarShards::Impl {
    TarShardSettings settings;
    std::vector<Sample> samples;
    std::string names;
    std::vector<FieldSpec> fields;

    void read_shards();
    void read_ahead_from(std::size_t index) const;
};

// Prefetches the run that starts here, as far as it is in this shard.
void TarShards::Impl::read_ahead_from(std::size_t index) const {
    const Sample& first = samples[index];
    std::uint64_t start = first.image.offset, end = start;
    std::size_t last = std::min(index + static_cast<std::size_t>(kNeighbours), samples.size());
    for (std::size_t i = index; i < last && samples[i].shard == first.shard; ++i)
        end = std::max(end, samples[i].image.offset + samples[i].image.size);
    read_ahead(settings.shards[first.shard].string(), start, end - start);
}

// Each free thread takes the next shard; the results are joined in the shards' order.
void TarShards::Impl::read_shards() {
    std::vector<ShardSamples> read(settings.shards.size());
    std::atomic<std::size_t> next = 0;
    std::mutex mutex;
    std::exception_ptr error;
    std::size_t failed =
        settings.shards.size();  // the first one that failed, so that every run reports the same
    {
        std::vector<std::jthread> threads;
        std::size_t count = std::min(read.size(), static_cast<std::size_t>(settings.threads));
        for (std::size_t t = 0; t < std::max<std::size_t>(count, 1); ++t) {
            threads.emplace_back([&] {
                for (std::size_t i = next++; i < read.size(); i = next++) {
                    try {
                        read[i] = read_shard(settings.shards[i], static_cast<std::uint32_t>(i));
                    } catch (...) {
                        std::lock_guard lock(mutex);
                        if (i < failed) error = std::current_exception();
                        failed = std::min(failed, i);
                    }
                }
            });
        }
    }
    if (error) std::rethrow_exception(error);
    for (ShardSamples& shard : read) {
        for (Sample sample : shard.samples) {
            sample.name += names.size();
            samples.push_back(sample);
        }
        names += shard.names;
    }
}

TarShards::TarShards(TarShardSettings settings) : impl_(std::make_unique<Impl>()) {
    settings.transform.check();
    Impl& my = *impl_;
    my.settings = std::move(settings);
    my.read_shards();
    bool has_image =
        std::ranges::any_of(my.samples, [](const Sample& sample) { return sample.image.size > 0; });
    if (!has_image) {
        std::string where = my.settings.shards.empty() ? "" : my.settings.shards[0].string();
        throw UserError(
            {.where = {where},
             .found = fmt::format("{} shards without images", my.settings.shards.size()),
             .expected = "files that end in .jpg, .jpeg, .png or .webp"});
    }
    my.fields = {my.settings.transform.field("image")};
    if (my.samples[0].label.size > 0) my.fields.push_back({"label", Element::int64, {}, false});
}
TarShards::~TarShards() = default;

std::int64_t TarShards::neighbours() const { return kNeighbours; }
std::int64_t TarShards::size() const { return static_cast<std::int64_t>(impl_->samples.size()); }
const std::vector<FieldSpec>& TarShards::fields() const { return impl_->fields; }

std::unique_ptr<Scratch> TarShards::make_scratch() const {
    return std::make_unique<TarScratch>(impl_->settings.transform);
}

std::string TarShards::name_of(std::int64_t index) const {
    const Sample& sample = impl_->samples[static_cast<std::size_t>(index)];
    return fmt::format("{}: {}", impl_->settings.shards[sample.shard].string(),
                       impl_->names.c_str() + sample.name);
}

void TarShards::write(const SampleDraw& draw, Scratch& scratch, std::span<std::byte* const> places,
                      SampleCost& cost) const {
    const Impl& my = *impl_;
    TarScratch& memory = static_cast<TarScratch&>(scratch);
    const Sample& sample = my.samples[static_cast<std::size_t>(draw.index)];
    bool labelled = my.fields.size() > 1;
    if (sample.image.size == 0) throw BadSample(name_of(draw.index), "no image, or an empty one");
    if (labelled && sample.label.size == 0) throw BadSample(name_of(draw.index), "no label");
    if (draw.index % kNeighbours == 0) my.read_ahead_from(static_cast<std::size_t>(draw.index));
    // Reads both parts at once: they are neighbours.
    std::uint64_t first = sample.image.offset, last = first + sample.image.size;
    if (labelled) {
        first = std::min(first, sample.label.offset);
        last = std::max(last, sample.label.offset + sample.label.size);
    }
    Bytes bytes;
    try {
        bytes = read_sample_part(my.settings.shards[sample.shard].string(), first, last - first,
                                 memory.bytes, cost);
    } catch (const BusySample& busy) {
        throw BusySample(name_of(draw.index), busy.what());
    } catch (const BadSample& bad) {
        throw BadSample(name_of(draw.index), bad.what());
    }
    if (bytes.size() < last - first)
        throw BadSample(name_of(draw.index), "the shard became shorter");
    if (labelled) {
        Bytes text = bytes.subspan(sample.label.offset - first, sample.label.size);
        auto label = parse_integer(trim({reinterpret_cast<const char*>(text.data()), text.size()}));
        if (!label) throw BadSample(name_of(draw.index), "a label that is not a number");
        std::memcpy(places[1], &*label, sizeof *label);
    }
    try {
        memory.stage.write(bytes.subspan(sample.image.offset - first, sample.image.size), draw,
                           places[0], cost);
    } catch (const BadImage& bad) {
        throw BadSample(name_of(draw.index), bad.what());
    }
}

std::vector<std::filesystem::path> shards_in(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> shards;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
        if (lower(entry.path().extension().string()) == ".tar") shards.push_back(entry.path());
    }
    std::ranges::sort(shards);
    return shards;
}

}  // namespace saturate
