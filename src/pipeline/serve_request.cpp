// SPDX-License-Identifier: Apache-2.0
#include "pipeline/serve_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/cache_folder.h"
#include "base/error.h"
#include "pipeline/array_source.h"
#include "pipeline/cache.h"
#include "pipeline/image_files.h"
#include "pipeline/image_folder.h"
#include "pipeline/sample_file.h"
#include "pipeline/subset_source.h"
#include "pipeline/tar_shards.h"
#include "pipeline/window.h"

namespace saturate {

namespace {

// Both sides come in one package, so a missing or wrong member is our own bug.
const Json& member(const Json& object, std::string_view key) {
    const Json& value = object[key];
    SATURATE_CHECK(!value.is_null(), fmt::format("the request has {}", key));
    return value;
}
std::int64_t whole(const Json& object, std::string_view key) {
    auto value = member(object, key).integer();
    SATURATE_CHECK(value.has_value(), fmt::format("{} is a whole number", key));
    return *value;
}
int small(const Json& object, std::string_view key) {
    std::int64_t value = whole(object, key);
    SATURATE_CHECK(value >= INT32_MIN && value <= INT32_MAX, fmt::format("{} is an int", key));
    return static_cast<int>(value);
}
double number(const Json& object, std::string_view key) {
    auto value = member(object, key).number();
    SATURATE_CHECK(value.has_value(), fmt::format("{} is a number", key));
    return *value;
}
bool flag(const Json& object, std::string_view key) {
    auto value = member(object, key).boolean();
    SATURATE_CHECK(value.has_value(), fmt::format("{} is true or false", key));
    return *value;
}
std::string text(const Json& object, std::string_view key) {
    auto value = member(object, key).string();
    SATURATE_CHECK(value.has_value(), fmt::format("{} is text", key));
    return *value;
}
std::vector<float> floats(const Json& list) {
    std::vector<float> out;
    for (const Json& item : list.items()) out.push_back(static_cast<float>(*item.number()));
    return out;
}
std::vector<std::string> texts(const Json& list) {
    std::vector<std::string> out;
    for (const Json& item : list.items()) out.push_back(*item.string());
    return out;
}
template <typename T>
T one_of(const Json& object, std::string_view key,
         std::initializer_list<std::pair<std::string_view, T>> names) {
    std::string word = text(object, key);
    for (const auto& [name, value] : names) {
        if (name == word) return value;
    }
    throw Bug(__FILE__, __LINE__, fmt::format("no {} {}", key, word));
}

class Blobs {
  public:
    Blobs(const Json& request, std::string_view bytes) : list_(request["blobs"]), bytes_(bytes) {}
    [[nodiscard]] bool has(std::string_view name) const { return !list_[name].is_null(); }
    [[nodiscard]] std::string_view find(std::string_view name) const {
        std::size_t at = 0;
        for (const auto& [key, size] : list_.members()) {
            auto bytes = static_cast<std::size_t>(size.integer().value_or(0));
            if (key == name) return bytes_.substr(at, bytes);
            at += bytes;
        }
        return {};
    }
    template <typename T>
    [[nodiscard]] std::vector<T> numbers(std::string_view name) const {
        std::string_view bytes = find(name);
        std::vector<T> out(bytes.size() / sizeof(T));
        if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
        return out;
    }

  private:
    const Json& list_;
    std::string_view bytes_;
};

ImageTransform transform_of(const Json& from) {
    ImageTransform out;
    out.fit = one_of<Fit>(from, "fit",
                          {{"stretch", Fit::stretch},
                           {"shorter_side", Fit::shorter_side},
                           {"resized_sides", Fit::resized_sides},
                           {"random_resized_crop", Fit::random_resized_crop},
                           {"random_crop", Fit::random_crop},
                           {"centre_crop", Fit::centre_crop},
                           {"as_is", Fit::as_is}});
    out.width = small(from, "width");
    out.height = small(from, "height");
    out.interpolation = one_of<Interpolation>(
        from, "interpolation",
        {{"bilinear", Interpolation::bilinear}, {"bicubic", Interpolation::bicubic}});
    out.resize_to = small(from, "resize_to");
    out.resize_sides = {small(from, "resize_width"), small(from, "resize_height")};
    out.crop_anywhere = flag(from, "crop_anywhere");
    out.area = {number(from, "area_low"), number(from, "area_high")};
    out.aspect = {number(from, "aspect_low"), number(from, "aspect_high")};
    out.pad = small(from, "pad");
    out.pad_value = small(from, "pad_value");
    out.flip_horizontal = number(from, "flip_horizontal");
    out.flip_vertical = number(from, "flip_vertical");
    out.jitter = {number(from, "brightness"), number(from, "contrast"), number(from, "saturation"),
                  number(from, "hue")};
    out.mean = floats(from["mean"]);
    out.deviation = floats(from["std"]);
    out.element = one_of<Element>(from, "dtype",
                                  {{"float32", Element::float32},
                                   {"bfloat16", Element::bfloat16},
                                   {"uint8", Element::uint8}});
    out.channels_last = flag(from, "channels_last");
    out.decode.channels = small(from, "channels");
    out.decode.jpeg = one_of<JpegDecode>(
        from, "decode", {{"exact", JpegDecode::region}, {"fast", JpegDecode::scaled}});
    out.decode.exif_orientation = flag(from, "exif");
    return out;
}

// Returns the size of the first readable image; all others must have the same.
ImageSize first_size(const SampleSource& source, const DecodeSettings& settings) {
    ImageDecoder decoder(settings);
    Buffer<std::uint8_t> memory;
    SampleCost cost;
    std::string why;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(source.size(), 100); ++i) {
        std::string path = source.name_of(i);
        try {
            return decoder.open(read_sample_file(path, memory, cost));
        } catch (const std::runtime_error& error) {  // BadSample, BadImage
            why = fmt::format("{}: {}", path, error.what());
        }
    }
    throw UserError({.found = fmt::format("no size is given and no image can be opened ({})", why),
                     .expected = "a transform that gives a size",
                     .fix = "transforms=[Resize((224, 224))]"});
}

struct Opened {
    std::shared_ptr<const SampleSource> source;
    std::vector<std::string> classes = {};
};

// If the transform sets no size, uses the size of the first image.
template <typename Make>
auto with_size(ImageTransform transform, Make make) {
    if (transform.fit != Fit::as_is) return make(transform);
    transform.fit = Fit::stretch;
    ImageSize size = first_size(*make(transform), transform.decode);
    transform.fit = Fit::as_is;
    transform.width = size.width;
    transform.height = size.height;
    return make(transform);
}

std::shared_ptr<const SampleSource> cached(const Json& cache,
                                           std::shared_ptr<const CacheableSource> source) {
    if (cache.is_null()) return source;
    CacheSettings settings{
        .place = one_of<CachePlace>(cache, "place",
                                    {{"memory", CachePlace::memory}, {"disk", CachePlace::disk}}),
        .limit_bytes = static_cast<std::uint64_t>(whole(cache, "limit_bytes")),
        .folder = text(cache, "folder")};
    if (settings.folder.empty()) settings.folder = user_cache_folder() / "samples";
    return std::make_shared<CachedSource>(std::move(source), settings);
}

Opened open_folder(const Json& request, const Json& from) {
    ImageFolderSettings settings{.root = text(from, "root"),
                                 .layout = one_of<FolderLayout>(from, "layout",
                                                                {{"classes", FolderLayout::classes},
                                                                 {"pairs", FolderLayout::pairs},
                                                                 {"table", FolderLayout::table},
                                                                 {"plain", FolderLayout::plain}}),
                                 .transform = {},
                                 .input = text(from, "input"),
                                 .target = text(from, "target"),
                                 .table = text(from, "table"),
                                 .points = flag(from, "points"),
                                 .classes = texts(from["classes"]),
                                 .listing = {.cache_folder = user_cache_folder() / "listings"}};
    auto folder =
        with_size(transform_of(member(request, "transform")), [&](const ImageTransform& transform) {
            settings.transform = transform;
            return std::make_shared<ImageFolder>(settings);
        });
    return {cached(request["cache"], folder), folder->classes()};
}

Opened open_files(const Json& request, const Json& from, const Blobs& blobs) {
    auto files =
        with_size(transform_of(member(request, "transform")), [&](const ImageTransform& transform) {
            return std::make_shared<ImageFiles>(
                ImageFilesSettings{.paths = std::string(blobs.find("paths")),
                                   .labels = blobs.numbers<std::int64_t>("labels"),
                                   .transform = transform});
        });
    return {cached(request["cache"], files), texts(from["classes"])};
}

Opened open_shards(const Json& request, const Json& from) {
    TarShardSettings settings{.shards = {},
                              .transform = transform_of(member(request, "transform"))};
    SATURATE_CHECK(settings.transform.fit != Fit::as_is, "images of shards are given a size");
    for (const std::string& path : texts(member(from, "paths"))) {
        std::error_code ignored;
        if (std::filesystem::is_directory(path, ignored)) {
            for (std::filesystem::path& shard : shards_in(path))
                settings.shards.push_back(std::move(shard));
        } else {
            settings.shards.emplace_back(path);
        }
    }
    return {std::make_shared<TarShards>(std::move(settings))};
}

Opened open_windows(const Json& from) {
    WindowParts parts = cut_windows(read_table(text(from, "path")),
                                    {.length = whole(from, "length"),
                                     .stride = whole(from, "stride"),
                                     .horizon = whole(from, "horizon"),
                                     .target = text(from, "target"),
                                     .validation_percent = number(from, "validation_percent"),
                                     .normalise = flag(from, "normalise"),
                                     .channel = flag(from, "channel")});
    if (text(from, "part") == "training") return {parts.training};
    if (!parts.validation)
        throw UserError({.where = {text(from, "path")},
                         .found = "no window fits into the rows for validation",
                         .expected = "more rows, or a larger validation_percent"});
    return {parts.validation};
}

Opened open_source(const Json& request, const Blobs& blobs) {
    const Json& from = member(request, "source");
    std::string kind = text(from, "kind");
    if (kind == "folder") return open_folder(request, from);
    if (kind == "files") return open_files(request, from, blobs);
    if (kind == "shards") return open_shards(request, from);
    if (kind == "windows") return open_windows(from);
    if (kind == "arrays") {
        std::string path = text(from, "path");
        return {std::make_shared<ArraySource>(open_arrays(path), path)};
    }
    throw Bug(__FILE__, __LINE__, fmt::format("no source {}", kind));
}

}  // namespace

ServedData open_request(const Json& request, std::string_view blob_bytes) {
    Blobs blobs(request, blob_bytes);
    Opened opened = open_source(request, blobs);
    if (blobs.has("subset"))
        opened.source = subset_of_source(opened.source, blobs.numbers<std::int64_t>("subset"));
    LoaderSettings loader{
        .batch_size = whole(request, "batch_size"),
        .workers = small(request, "workers"),
        .prefetch_factor = small(request, "prefetch"),
        .prefetch_bytes = static_cast<std::uint64_t>(whole(request, "memory_bytes")),
        .shuffle = flag(request, "shuffle"),
        .drop_last = flag(request, "drop_last"),
        .weights = blobs.numbers<double>("weights"),
        .seed = static_cast<std::uint64_t>(whole(request, "seed")),
        .shard = {.rank = small(request, "rank"), .count = small(request, "world")},
        .bad_samples_max = whole(request, "bad_samples_max"),
        .sample_max = std::chrono::milliseconds(whole(request, "sample_ms_max"))};
    return {.source = std::move(opened.source),
            .loader = std::move(loader),
            .classes = std::move(opened.classes),
            .tells_samples = flag(request, "tells_samples")};
}

}  // namespace saturate
