// SPDX-License-Identifier: Apache-2.0
#include "pipeline/image_files.h"

#include <fmt/format.h>

#include <cstring>

#include "base/error.h"
#include "pipeline/image_scratch.h"
#include "pipeline/random.h"

namespace saturate {

ImageFiles::ImageFiles(ImageFilesSettings settings) : settings_(std::move(settings)) {
    settings_.transform.check();
    for (std::size_t at = 0; at < settings_.paths.size(); at = settings_.paths.find('\0', at) + 1) {
        starts_.push_back(at);
        if (settings_.paths.find('\0', at) == std::string::npos) break;
    }
    if (starts_.empty())
        throw UserError(
            {.where = {}, .found = "an empty list of images", .expected = "at least one path"});
    fields_ = {settings_.transform.field("image")};
    if (settings_.labels.empty()) return;
    if (settings_.labels.size() != starts_.size())
        throw UserError({.found = fmt::format("{} labels for {} images", settings_.labels.size(),
                                              starts_.size()),
                         .expected = "one per image, or none"});
    fields_.push_back({"label", Element::int64, {}, false});
}

std::int64_t ImageFiles::size() const { return static_cast<std::int64_t>(starts_.size()); }

std::unique_ptr<Scratch> ImageFiles::make_scratch() const {
    return std::make_unique<ImageScratch>(settings_.transform);
}

std::string ImageFiles::name_of(std::int64_t index) const {
    return settings_.paths.data() + starts_[static_cast<std::size_t>(index)];
}

void ImageFiles::write_label(std::int64_t index, std::span<std::byte* const> places) const {
    if (settings_.labels.empty()) return;
    std::memcpy(places[1], &settings_.labels[static_cast<std::size_t>(index)],
                sizeof(std::int64_t));
}

void ImageFiles::write(const SampleDraw& draw, Scratch& scratch, std::span<std::byte* const> places,
                       SampleCost& cost) const {
    auto& memory = static_cast<ImageScratch&>(scratch);
    memory.path = settings_.paths.data() + starts_[static_cast<std::size_t>(draw.index)];
    memory.with_file(cost,
                     [&](Bytes bytes) { (void)memory.stage.write(bytes, draw, places[0], cost); });
    write_label(draw.index, places);
}

void ImageFiles::prepare(std::int64_t index, Scratch& scratch, std::vector<std::byte>& prepared,
                         SampleCost& cost) const {
    auto& memory = static_cast<ImageScratch&>(scratch);
    memory.path = settings_.paths.data() + starts_[static_cast<std::size_t>(index)];
    prepared.clear();
    memory.with_file(cost, [&](Bytes bytes) { memory.stage.prepare(bytes, prepared, cost); });
}

void ImageFiles::finish(const SampleDraw& draw, std::span<const std::byte> prepared,
                        Scratch& scratch, std::span<std::byte* const> places,
                        SampleCost& cost) const {
    auto& memory = static_cast<ImageScratch&>(scratch);
    try {
        (void)memory.stage.write_prepared(prepared, draw, places[0], cost);
    } catch (const BadImage& bad) {
        throw BadSample(name_of(draw.index), bad.what());
    }
    write_label(draw.index, places);
}

std::string ImageFiles::identity() const {
    // Starts with the version of what prepare() writes; increase it when decoding changes.
    std::uint64_t hash = mix(1, static_cast<std::uint64_t>(settings_.transform.decode.channels));
    hash = mix(hash, settings_.transform.decode.exif_orientation);
    for (std::int64_t i = 0; i < size(); ++i) hash = mix_file(hash, name_of(i));
    return fmt::format("image files {} {:016x}", size(), hash);
}

}  // namespace saturate
