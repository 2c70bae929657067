// SPDX-License-Identifier: Apache-2.0
#include "pipeline/open.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/cache_folder.h"
#include "base/error.h"
#include "base/text.h"
#include "config/reference_jobs.h"
#include "pipeline/array_source.h"
#include "pipeline/cache.h"
#include "pipeline/image_folder.h"
#include "pipeline/tar_shards.h"
#include "pipeline/window.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

enum class Purpose { training, validation };

bool has_ending(const fs::path& folder, const std::string& ending) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
        if (lower(entry.path().extension().string()) == ending) return true;
    }
    return false;
}

std::int64_t whole(const Settings& settings, Setting setting, std::int64_t otherwise) {
    std::optional<double> number = settings.number(setting);
    return number ? static_cast<std::int64_t>(*number) : otherwise;
}

// image_size is one side or [width, height].
void set_size(const Settings& settings, ImageTransform& transform, ImageSize otherwise) {
    const Value* value = settings.get(Setting::image_size);
    transform.width = otherwise.width;
    transform.height = otherwise.height;
    if (!value || value->numbers.empty()) return;
    transform.width = transform.height = static_cast<int>(value->numbers[0]);
    if (value->numbers.size() > 1) transform.height = static_cast<int>(value->numbers[1]);
}

ImageTransform transform_for(const Settings& settings, FolderLayout layout, Purpose purpose) {
    const ReferenceJob* job = find_reference_job(settings.word(Setting::job));
    bool random = purpose == Purpose::training;
    ImageTransform transform;
    transform.channels_last = settings.flag(Setting::channels_last).value_or(false);
    if (job && job->picture.width > 0) {
        const JobPicture& picture = job->picture;
        set_size(settings, transform, {picture.width, picture.height});
        transform.decode.channels = picture.channels;
        if (picture.mean != 0 || picture.deviation != 1) {
            auto channels = static_cast<std::size_t>(picture.channels);
            transform.mean.assign(channels, picture.mean);
            transform.deviation.assign(channels, picture.deviation);
        }
    } else if (layout == FolderLayout::table) {
        set_size(settings, transform, {224, 224});
    } else if (layout == FolderLayout::pairs) {
        auto side = static_cast<int>(whole(settings, Setting::patch_size, 128));
        transform.width = transform.height = side;
        transform.fit = random ? Fit::random_crop : Fit::centre_crop;
        transform.flip_horizontal = transform.flip_vertical = random ? 0.5 : 0;
    } else {
        set_size(settings, transform, {224, 224});
        transform.fit = random ? Fit::random_resized_crop : Fit::shorter_side;
        transform.resize_to = std::max(transform.width, transform.height) * 8 / 7;
        transform.flip_horizontal = random ? 0.5 : 0;
        transform.mean = {0.485f, 0.456f, 0.406f};
        transform.deviation = {0.229f, 0.224f, 0.225f};
    }
    return transform;
}

FolderLayout layout_of(const fs::path& root) {
    if (fs::is_directory(root / "input") && fs::is_directory(root / "target"))
        return FolderLayout::pairs;
    if (fs::exists(root / "labels.csv")) return FolderLayout::table;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(root, ignored)) {
        if (entry.is_directory()) return FolderLayout::classes;
    }
    return FolderLayout::plain;
}

std::string name_of(FolderLayout layout) {
    switch (layout) {
        case FolderLayout::classes:
            return "images in classes";
        case FolderLayout::pairs:
            return "pairs of images";
        case FolderLayout::table:
            return "images with a table of numbers";
        case FolderLayout::plain:
            return "images";
    }
    throw Bug(__FILE__, __LINE__, "every layout has a name");
}

// What opening images needs apart from the path.
struct ImageWish {
    const Settings& settings;
    std::optional<CacheSettings> cache;
};

struct OpenedImages {
    std::shared_ptr<const SampleSource> source;
    std::vector<std::string> classes;
};

// `classes`: those of the training images, so that validation images get the same labels.
OpenedImages open_images(const ImageWish& wish, const fs::path& root, FolderLayout layout,
                         Purpose purpose, std::vector<std::string> classes = {}) {
    const ReferenceJob* job = find_reference_job(wish.settings.word(Setting::job));
    auto folder = std::make_shared<ImageFolder>(
        ImageFolderSettings{.root = root,
                            .layout = layout,
                            .transform = transform_for(wish.settings, layout, purpose),
                            .points = job && job->samples == JobSamples::points,
                            .classes = std::move(classes),
                            .listing = {.cache_folder = user_cache_folder() / "listings"}});
    if (!wish.cache) return {folder, folder->classes()};
    CacheSettings cache = *wish.cache;
    // Validation data is smaller and gets a tenth of the memory.
    if (cache.place == CachePlace::memory)
        cache.limit_bytes = cache.limit_bytes / 10 * (purpose == Purpose::training ? 9 : 1);
    return {std::make_shared<CachedSource>(folder, cache), folder->classes()};
}

std::optional<CacheSettings> cache_of(const Settings& settings, const CacheLimits& limits) {
    const Value* value = settings.get(Setting::cache);
    std::string word = settings.word(Setting::cache);
    if (word.empty() || word == "off" || word == "false" || word == "none") return std::nullopt;
    if (word == "ram" || word == "memory" || word == "true") {
        std::uint64_t quarter = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                                static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE)) / 4;
        return CacheSettings{.place = CachePlace::memory,
                             .limit_bytes = limits.memory_bytes ? limits.memory_bytes : quarter};
    }
    if (word != "disk")
        throw UserError({.where = value->place,
                         .found = fmt::format("cache: {}", in_quotes(value->text)),
                         .expected = "off, ram or disk",
                         .fix = ""});
    CacheSettings out{.place = CachePlace::disk, .limit_bytes = limits.disk_bytes};
    out.folder = limits.folder.empty() ? user_cache_folder() / "samples" : limits.folder;
    std::error_code ignored;
    fs::create_directories(out.folder, ignored);
    if (out.limit_bytes == 0) {
        fs::space_info space = fs::space(out.folder, ignored);
        out.limit_bytes = ignored ? 1ull << 30 : space.available / 2;
    }
    return out;
}

// Finds a part's folder by its usual names; empty if there is none.
fs::path folder_of(const fs::path& root, std::initializer_list<const char*> names) {
    for (const char* name : names) {
        if (fs::is_directory(root / name)) return root / name;
    }
    return {};
}

OpenedData open_image_parts(const ImageWish& wish, const fs::path& root) {
    fs::path training = folder_of(root, {"train", "training"});
    fs::path validation = folder_of(root, {"val", "valid", "validation", "test"});
    OpenedData out;
    if (!training.empty()) {
        FolderLayout layout = layout_of(training);
        out.what = name_of(layout);
        OpenedImages images = open_images(wish, training, layout, Purpose::training);
        out.training = images.source;
        out.classes = images.classes;
        if (validation.empty()) return out;
        out.validation =
            open_images(wish, validation, layout, Purpose::validation, images.classes).source;
        return out;
    }
    FolderLayout layout = layout_of(root);
    out.what = name_of(layout);
    OpenedImages images = open_images(wish, root, layout, Purpose::training);
    out.classes = images.classes;
    out.training = all_but_each_tenth(images.source);
    out.validation = each_tenth(open_images(wish, root, layout, Purpose::validation).source);
    if (out.validation->size() == 0) out.validation = nullptr;
    return out;
}

std::shared_ptr<const SampleSource> open_shards(const Settings& settings, const fs::path& folder,
                                                Purpose purpose) {
    return std::make_shared<TarShards>(
        TarShardSettings{.shards = shards_in(folder),
                         .transform = transform_for(settings, FolderLayout::classes, purpose)});
}

// The shards are in the folder itself or in its parts' folders.
OpenedData open_shard_parts(const Settings& settings, const fs::path& root,
                            const fs::path& training) {
    OpenedData out{.training = nullptr, .validation = nullptr, .what = "images in tar shards"};
    if (training == root) {
        out.training = all_but_each_tenth(open_shards(settings, root, Purpose::training));
        out.validation = each_tenth(open_shards(settings, root, Purpose::validation));
        if (out.validation->size() == 0) out.validation = nullptr;
        return out;
    }
    out.training = open_shards(settings, training, Purpose::training);
    fs::path validation = folder_of(root, {"val", "valid", "validation", "test"});
    if (!validation.empty())
        out.validation = open_shards(settings, validation, Purpose::validation);
    return out;
}

OpenedData open_windows(const Settings& settings, const fs::path& path) {
    const ReferenceJob* job = find_reference_job(settings.word(Setting::job));
    WindowSettings windows{.channel = job && job->samples == JobSamples::window_pictures};
    // sequence_length may be a list for a grid search; its first number is used here.
    for (Setting setting : {Setting::window_size, Setting::sequence_length}) {
        const Value* value = settings.get(setting);
        if (value && !value->numbers.empty())
            windows.length = static_cast<std::int64_t>(value->numbers[0]);
    }
    windows.stride = whole(settings, Setting::window_stride, windows.stride);
    windows.horizon = whole(settings, Setting::window_horizon, windows.horizon);
    if (const Value* target = settings.get(Setting::target_column)) windows.target = target->text;
    std::shared_ptr<const DataTable> table = read_table(path);
    WindowParts parts = cut_windows(table, windows);
    return {.training = parts.training,
            .validation = parts.validation,
            .what = "windows of a table",
            .target_column = table->column(windows.target),
            .target_mean = parts.training->target_mean(),
            .target_deviation = parts.training->target_deviation()};
}

OpenedData open_array_parts(const fs::path& path) {
    auto whole = std::make_shared<ArraySource>(open_arrays(path), path.string());
    OpenedData out{
        .training = all_but_each_tenth(whole), .validation = each_tenth(whole), .what = "arrays"};
    if (out.validation->size() == 0) out.validation = nullptr;
    return out;
}

fs::path data_path(const Settings& settings, const Value& value) {
    fs::path path = value.text;
    if (fs::exists(path)) return path;
    fs::path beside = fs::path(value.place.file).parent_path() / path;
    if (path.is_relative() && fs::exists(beside)) return beside;
    const ReferenceJob* job = find_reference_job(settings.word(Setting::job));
    bool can_make = job && job->made.files != MadeFiles::none;
    throw UserError({.where = value.place,
                     .found = fmt::format("data: {} does not exist", in_quotes(value.text)),
                     .expected = "a folder of images, tar or npy files, or a CSV, npy or npz file",
                     .fix = can_make ? fmt::format("saturate data make {}", job->name) : ""});
}

}  // namespace

OpenedData open_data(const Settings& settings, const CacheLimits& limits) {
    const Value* value = settings.get(Setting::data);
    if (!value)
        throw UserError({.where = {},
                         .found = "the configuration names no data",
                         .expected = "data: PATH, a folder of images, tar or npy files, or a CSV, "
                                     "npy or npz file",
                         .fix = ""});
    fs::path path = data_path(settings, *value);
    const ReferenceJob* job = find_reference_job(settings.word(Setting::job));
    std::string ending = lower(path.extension().string());
    bool wants_windows = job && job->wants_windows(), wants_images = job && job->wants_pictures();
    bool is_folder = fs::is_directory(path), is_array = ending == ".npy" || ending == ".npz";
    if ((wants_windows && is_folder) || (wants_images && !is_folder && !is_array))
        throw UserError({.where = value->place,
                         .found = fmt::format("data: {} is a {}", in_quotes(value->text),
                                              is_folder ? "folder" : "file"),
                         .expected = is_folder ? "a table, CSV or npy, rows by time"
                                               : "a folder of images or tar files",
                         .fix = fmt::format("saturate data make {}", job->name)});
    if (is_folder) {
        fs::path training = folder_of(path, {"train", "training"});
        if (training.empty()) training = path;
        if (has_ending(training, ".tar")) return open_shard_parts(settings, path, training);
        if (has_ending(path, ".npy")) return open_array_parts(path);
        return open_image_parts({.settings = settings, .cache = cache_of(settings, limits)}, path);
    }
    if (ending == ".npz" || (ending == ".npy" && !wants_windows)) return open_array_parts(path);
    return open_windows(settings, path);
}

LoaderSettings loader_settings(const Settings& settings) {
    LoaderSettings out;
    out.batch_size = whole(settings, Setting::batch_size, out.batch_size);
    out.workers = static_cast<int>(whole(settings, Setting::num_workers, -1));
    out.prefetch_factor =
        static_cast<int>(whole(settings, Setting::prefetch_factor, out.prefetch_factor));
    out.bad_samples_max = whole(settings, Setting::bad_samples_max, out.bad_samples_max);
    out.seed = static_cast<std::uint64_t>(whole(settings, Setting::seed, 0));
    return out;
}

}  // namespace saturate
