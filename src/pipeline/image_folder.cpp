// SPDX-License-Identifier: Apache-2.0
#include "pipeline/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "pipeline/image_scratch.h"
#include "pipeline/random.h"

namespace saturate {

namespace {

// Path without ending, which both sides of a pair share: "a/b/0001" for "a/b" and "0001.png".
std::string stem_of(const FileList& list, std::int64_t file) {
    std::string_view name = list.name(file);
    const std::string& folder = list.folder_of(file).path;
    return fmt::format("{}/{}", folder, name.substr(0, name.rfind('.')));
}

constexpr std::uint64_t kTableBytesMax = std::uint64_t{1} << 30;

}  // namespace

struct ImageFolder::Impl {
    ImageFolderSettings settings;
    FileList files;                       // the images; for pairs the inputs
    FileList targets;                     // for pairs
    std::vector<std::int64_t> target_of;  // for pairs: the target of each input
    std::vector<std::int64_t> rows;       // table: the file of each row
    std::vector<float> numbers;           // table: `columns` per row
    std::size_t columns = 0;
    std::vector<std::string> classes;
    std::vector<std::int32_t> class_of;  // per folder of `files`
    std::vector<FieldSpec> fields;

    [[noreturn]] void fail(std::string found, std::string expected) const {
        throw UserError({.where = {settings.root.string()},
                         .found = std::move(found),
                         .expected = std::move(expected)});
    }
    void make_classes();
    void make_pairs();
    void make_table();
    void add_row(std::string_view line, int number,
                 const std::unordered_map<std::string, std::int64_t>& by_name);
    [[nodiscard]] std::int64_t file_of(std::int64_t index) const {
        return settings.layout == FolderLayout::table ? rows[static_cast<std::size_t>(index)]
                                                      : index;
    }
    void write_rest(const SampleDraw& draw, ImageSize size,
                    std::span<std::byte* const> places) const;
    void check_pair(std::int64_t index, ImageSize input, ImageSize target) const;
};

void ImageFolder::Impl::make_classes() {
    std::map<std::string, std::int32_t, std::less<>> numbers;
    for (const FileList::Folder& folder : files.folders()) {
        if (folder.path.empty()) continue;
        numbers.emplace(folder.path.substr(0, folder.path.find('/')), 0);
    }
    if (numbers.empty()) fail("contains no folders", "one folder of images per class");
    classes = settings.classes;
    for (auto& [name, number] : numbers) {
        auto known = std::ranges::find(classes, name);
        if (known == classes.end() && !settings.classes.empty())
            fail(fmt::format("the class {}", in_quotes(name)),
                 fmt::format("one of the training classes: {}", join(settings.classes, ", ")));
        number = static_cast<std::int32_t>(known - classes.begin());
        if (known == classes.end()) classes.push_back(name);
    }
    std::vector<std::int64_t> counts(classes.size());
    for (std::size_t i = 0; i < files.folders().size(); ++i) {
        const FileList::Folder& folder = files.folders()[i];
        bool last = i + 1 == files.folders().size();
        std::int64_t count = (last ? files.size() : files.folders()[i + 1].first) - folder.first;
        std::int32_t number =
            folder.path.empty() ? -1 : numbers.at(folder.path.substr(0, folder.path.find('/')));
        if (number < 0 && count > 0)
            fail(fmt::format("contains {} images outside the class folders, such as {}", count,
                             in_quotes(files.name(folder.first))),
                 "one folder of images per class, and no images outside them");
        class_of.push_back(number);
        if (number >= 0) counts[static_cast<std::size_t>(number)] += count;
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] == 0 && settings.classes.empty())
            fail(fmt::format("the class {} has no images", in_quotes(classes[i])),
                 "at least one image in each folder");
    }
    fields = {settings.transform.field("image"), {"label", Element::int64, {}, false}};
}

void ImageFolder::Impl::make_pairs() {
    targets = list_files(settings.root / settings.target, settings.listing);
    std::unordered_map<std::string, std::int64_t> by_stem;
    for (std::int64_t i = 0; i < targets.size(); ++i) by_stem.emplace(stem_of(targets, i), i);
    std::int64_t lonely = 0;
    std::string example;
    for (std::int64_t i = 0; i < files.size(); ++i) {
        auto found = by_stem.find(stem_of(files, i));
        if (found != by_stem.end()) {
            target_of.push_back(found->second);
        } else if (lonely++ == 0) {
            files.path(i, example);
        }
    }
    if (lonely > 0)
        fail(fmt::format("{} of {} inputs have no target, such as {}", lonely, files.size(),
                         in_quotes(example)),
             fmt::format("a file of the same name below {}", settings.target));
    fields = {settings.transform.field(settings.input), settings.transform.field(settings.target)};
}

// Read line by line: maps of cells would be slow for a table of a million rows.
void ImageFolder::Impl::make_table() {
    std::filesystem::path path = settings.root / settings.table;
    std::string text = read_file(path, kTableBytesMax, "a table of labels");
    std::unordered_map<std::string, std::int64_t> by_name;
    for (std::int64_t i = 0; i < files.size(); ++i) {
        const std::string& folder = files.folder_of(i).path;
        std::string name(files.name(i));
        by_name.emplace(folder.empty() ? name : folder + "/" + name, i);
    }
    int number = 0;
    for (std::string_view line : split(text, '\n')) {
        ++number;
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (number == 1) {
            columns = static_cast<std::size_t>(std::ranges::count(line, ','));
            if (columns == 0)
                throw UserError({.where = {path.string(), 1},
                                 .found = "a table with one column",
                                 .expected = "a header: file, then one name per number"});
        } else if (!trim(line).empty()) {
            add_row(line, number, by_name);
        }
    }
    fields = {settings.transform.field("image"),
              {"target", Element::float32, {static_cast<std::int64_t>(columns)}, false}};
}

void ImageFolder::Impl::add_row(std::string_view line, int number,
                                const std::unordered_map<std::string, std::int64_t>& by_name) {
    std::vector<std::string_view> cells = split(line, ',');
    std::string path = (settings.root / settings.table).string();
    if (cells.size() != columns + 1)
        throw UserError({.where = {path, number},
                         .found = fmt::format("{} cells", cells.size()),
                         .expected = fmt::format("{}, as in the header", columns + 1)});
    auto found = by_name.find(std::string(trim(cells[0])));
    if (found == by_name.end())
        throw UserError({.where = {path, number},
                         .found = fmt::format("no image {}", in_quotes(trim(cells[0]))),
                         .expected = "the path of an image below the folder of the table"});
    rows.push_back(found->second);
    for (std::size_t i = 1; i < cells.size(); ++i) {
        auto value = parse_number(trim(cells[i]));
        if (!value || !std::isfinite(*value))
            throw UserError({.where = {path, number},
                             .found = fmt::format("{} is not a number", in_quotes(cells[i])),
                             .expected = "a file name, then numbers"});
        numbers.push_back(static_cast<float>(*value));
    }
}

ImageFolder::ImageFolder(ImageFolderSettings settings) : impl_(std::make_unique<Impl>()) {
    settings.transform.check();
    impl_->settings = std::move(settings);
    Impl& my = *impl_;
    bool pairs = my.settings.layout == FolderLayout::pairs;
    my.files = list_files(pairs ? my.settings.root / my.settings.input : my.settings.root,
                          my.settings.listing);
    if (my.files.size() == 0)
        my.fail("contains no images",
                fmt::format("files that end in {}", join(my.settings.listing.endings, ", ")));
    switch (my.settings.layout) {
        case FolderLayout::classes:
            my.make_classes();
            break;
        case FolderLayout::pairs:
            my.make_pairs();
            break;
        case FolderLayout::table:
            my.make_table();
            break;
        case FolderLayout::plain:
            my.fields = {my.settings.transform.field("image")};
            break;
    }
}
ImageFolder::~ImageFolder() = default;

std::int64_t ImageFolder::size() const {
    return impl_->settings.layout == FolderLayout::table
               ? static_cast<std::int64_t>(impl_->rows.size())
               : impl_->files.size();
}

const std::vector<FieldSpec>& ImageFolder::fields() const { return impl_->fields; }
const std::vector<std::string>& ImageFolder::classes() const { return impl_->classes; }
std::vector<std::string> ImageFolder::notes() const {
    if (!impl_->files.unsettled() && !impl_->targets.unsettled()) return {};
    return {fmt::format(
        "{}: files appeared or disappeared while the folder was listed: some may be missing",
        impl_->settings.root.string())};
}

std::unique_ptr<Scratch> ImageFolder::make_scratch() const {
    return std::make_unique<ImageScratch>(impl_->settings.transform);
}

void ImageFolder::Impl::write_rest(const SampleDraw& draw, ImageSize size,
                                   std::span<std::byte* const> places) const {
    std::size_t row = static_cast<std::size_t>(draw.index);
    if (settings.layout == FolderLayout::classes) {
        const FileList::Folder& folder = files.folder_of(draw.index);
        std::int64_t label = class_of[static_cast<std::size_t>(&folder - files.folders().data())];
        std::memcpy(places[1], &label, sizeof label);
    } else if (settings.layout == FolderLayout::table) {
        std::memcpy(places[1], numbers.data() + row * columns, columns * sizeof(float));
        if (!settings.points) return;
        ImagePlan plan = plan_image(settings.transform, size, draw);
        auto* values = reinterpret_cast<float*>(places[1]);
        for (std::size_t i = 0; i + 1 < columns; i += 2) {
            values[i] = static_cast<float>(plan.place.x + plan.across.moved(values[i]));
            values[i + 1] = static_cast<float>(plan.place.y + plan.down.moved(values[i + 1]));
        }
    }
}

void ImageFolder::Impl::check_pair(std::int64_t index, ImageSize input, ImageSize target) const {
    if (input == target) return;
    std::string path;
    files.path(index, path);
    throw BadSample(path, fmt::format("the input is {}x{}, its target {}x{}", input.width,
                                      input.height, target.width, target.height));
}

void ImageFolder::write(const SampleDraw& draw, Scratch& scratch,
                        std::span<std::byte* const> places, SampleCost& cost) const {
    const Impl& my = *impl_;
    ImageScratch& memory = static_cast<ImageScratch&>(scratch);
    ImageSize size, other;
    my.files.path(my.file_of(draw.index), memory.path);
    memory.with_file(cost,
                     [&](Bytes bytes) { size = memory.stage.write(bytes, draw, places[0], cost); });
    if (my.settings.layout == FolderLayout::pairs) {
        my.targets.path(my.target_of[static_cast<std::size_t>(draw.index)], memory.path);
        memory.with_file(
            cost, [&](Bytes bytes) { other = memory.stage.write(bytes, draw, places[1], cost); });
        my.check_pair(draw.index, size, other);
    }
    my.write_rest(draw, size, places);
}

void ImageFolder::prepare(std::int64_t index, Scratch& scratch, std::vector<std::byte>& prepared,
                          SampleCost& cost) const {
    const Impl& my = *impl_;
    ImageScratch& memory = static_cast<ImageScratch&>(scratch);
    auto decode = [&](Bytes bytes) { memory.stage.prepare(bytes, prepared, cost); };
    prepared.clear();
    my.files.path(my.file_of(index), memory.path);
    memory.with_file(cost, decode);
    if (my.settings.layout != FolderLayout::pairs) return;
    my.targets.path(my.target_of[static_cast<std::size_t>(index)], memory.path);
    memory.with_file(cost, decode);
}

void ImageFolder::finish(const SampleDraw& draw, std::span<const std::byte> prepared,
                         Scratch& scratch, std::span<std::byte* const> places,
                         SampleCost& cost) const {
    const Impl& my = *impl_;
    ImageScratch& memory = static_cast<ImageScratch&>(scratch);
    ImageSize size;
    try {
        size = memory.stage.write_prepared(prepared, draw, places[0], cost);
        if (my.settings.layout == FolderLayout::pairs)
            my.check_pair(draw.index, size,
                          memory.stage.write_prepared(prepared, draw, places[1], cost));
    } catch (const BadImage& bad) {
        throw BadSample(name_of(draw.index), bad.what());
    }
    my.write_rest(draw, size, places);
}

std::string ImageFolder::identity() const {
    const Impl& my = *impl_;
    // Starts with the version of what prepare() writes; increase it when decoding changes.
    std::uint64_t hash = mix(1, static_cast<std::uint64_t>(my.settings.transform.decode.channels));
    hash = mix(hash, my.settings.transform.decode.exif_orientation);
    hash = mix(hash, static_cast<std::uint64_t>(my.settings.layout));
    std::string path;
    for (const FileList* list : {&my.files, &my.targets}) {
        for (std::int64_t i = 0; i < list->size(); ++i) {
            list->path(i, path);
            hash = mix_file(hash, path);
        }
    }
    for (std::int64_t row : my.rows) hash = mix(hash, static_cast<std::uint64_t>(row));
    return fmt::format("images {} {} {:016x}", my.settings.root.string(), size(), hash);
}

std::string ImageFolder::name_of(std::int64_t index) const {
    std::string path;
    impl_->files.path(impl_->file_of(index), path);
    return path;
}

}  // namespace saturate
