// SPDX-License-Identifier: Apache-2.0
#include "pipeline/open.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "pipeline/image_write.h"
#include "pipeline/synthetic.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

Settings settings_of(const std::string& yaml) {
    return Settings::read(Document::parse(yaml, "c.yaml"));
}

OpenedData open(const fs::path& data, const std::string& more) {
    return open_data(settings_of(fmt::format("data: {}\n{}", data.string(), more)));
}

std::string npy_of_int64(const std::vector<std::int64_t>& values) {
    std::string header =
        fmt::format("{{'descr': '<i8', 'fortran_order': False, 'shape': ({},), }}", values.size());
    header.resize(117, ' ');
    header += '\n';
    std::string out("\x93NUMPY\1\0\x76\0", 10);
    out += header;
    out.append(reinterpret_cast<const char*>(values.data()), values.size() * 8);
    return out;
}

void image(const fs::path& path) {
    fs::create_directories(path.parent_path());
    std::vector<std::uint8_t> pixels(40 * 30 * 3, 128);
    write_png(path, {.pixels = pixels.data(), .size = {40, 30}, .channels = 3, .stride = 120});
}

TEST(OpenTest, ATableBecomesWindowsOfTheLengthThatIsSet) {
    TemporaryFolder folder;
    std::string text = "a,b\n";
    for (int i = 0; i < 100; ++i) text += fmt::format("{},{}\n", i, 2 * i);
    fs::path table = folder.file("t.csv", text);
    OpenedData sequence = open(table, "job: sequence\nsequence_length: 12\n");
    EXPECT_EQ(sequence.what, "windows of a table");
    EXPECT_EQ(sequence.training->fields()[0].shape, (std::vector<std::int64_t>{12, 2}));
    EXPECT_EQ(sequence.training->size(), 68);
    EXPECT_EQ(sequence.validation->size(), 8);
    EXPECT_EQ(sequence.target_column, 1);
    EXPECT_FLOAT_EQ(static_cast<float>(sequence.target_mean), 79);
    OpenedData cnn = open(table, "job: window_cnn\nwindow_size: 24\n");
    EXPECT_EQ(cnn.training->fields()[0].shape, (std::vector<std::int64_t>{1, 24, 2}));
    OpenedData further = open(table,
                              "job: sequence\nsequence_length: 12\nwindow_stride: 4\n"
                              "window_horizon: 9\ntarget_column: a\n");
    EXPECT_EQ(further.training->size(), 15);  // starts at rows 0, 4, ... 56
    EXPECT_EQ(further.target_column, 0);
}

TEST(OpenTest, AFolderOfShardsIsRead) {
    TemporaryFolder folder, packed;
    for (int i = 0; i < 10; ++i) {
        image(folder.path() / fmt::format("{}.png", i));
        folder.file(fmt::format("{}.cls", i), "1");
    }
    fs::create_directory(packed.path() / "train");
    for (const char* shard : {"a.tar", "train/b.tar"}) {
        std::string path = (packed.path() / shard).string();
        ASSERT_EQ(
            run({"tar", "--sort=name", "-C", folder.path().string(), "-cf", path, "."}).status, 0);
    }
    OpenedData parts = open(packed.path(), "image_size: 32\n");
    EXPECT_EQ(parts.what, "images in tar shards");
    EXPECT_EQ(parts.training->size(), 10);
    EXPECT_EQ(parts.training->fields().size(), 2u);
    EXPECT_EQ(parts.validation, nullptr);
    OpenedData whole = open(packed.path() / "train", "image_size: 32\n");
    EXPECT_EQ(whole.training->size(), 9);
    EXPECT_EQ(whole.validation->size(), 1);
}

TEST(OpenTest, ImagesInClassesKeepEveryTenthForValidation) {
    TemporaryFolder folder;
    for (int i = 0; i < 20; ++i)
        image(folder.path() / (i % 2 ? "cat" : "dog") / fmt::format("{:02}.png", i));
    OpenedData data = open(folder.path(), "job: classifier\nimage_size: 32\nnum_classes: 2\n");
    EXPECT_EQ(data.what, "images in classes");
    EXPECT_EQ(data.training->size(), 18);
    EXPECT_EQ(data.validation->size(), 2);
    EXPECT_EQ(data.training->fields()[0].shape, (std::vector<std::int64_t>{1, 32, 32}));
    std::set<std::string> names;
    for (const auto& part : {data.training, data.validation}) {
        for (std::int64_t i = 0; i < part->size(); ++i) names.insert(part->name_of(i));
    }
    EXPECT_EQ(names.size(), 20u) << "no image in both parts";
}

// Sorted labels, and labels that come in turns: every one of them is validated on.
TEST(OpenTest, ArraysValidateOnEveryLabel) {
    for (bool sorted : {true, false}) {
        TemporaryFolder folder;
        std::vector<std::int64_t> labels;
        for (std::int64_t i = 0; i < 1005; ++i) labels.push_back(sorted ? i / 101 : i % 10);
        folder.file("y.npy", npy_of_int64(labels));
        OpenedData data = open(folder.path() / "y.npy", "job: torchscript\n");
        ASSERT_EQ(data.training->size(), 905);
        ASSERT_EQ(data.validation->size(), 100);
        std::set<std::int64_t> seen;
        std::set<std::string> names;
        for (const auto& part : {data.validation, data.training}) {
            auto scratch = part->make_scratch();
            for (std::int64_t i = 0; i < part->size(); ++i) {
                std::int64_t label = -1;
                std::array<std::byte*, 1> places{reinterpret_cast<std::byte*>(&label)};
                SampleCost cost;
                part->write({.index = i}, *scratch, places, cost);
                if (part == data.validation) seen.insert(label);
                names.insert(part->name_of(i));
            }
        }
        EXPECT_EQ(seen.size(), 10u) << sorted;
        EXPECT_EQ(names.size(), 1005u) << "each sample in one part";
    }
}

TEST(OpenTest, TheLocatorsPointsAreThoseOfTheResizedPicture) {
    TemporaryFolder folder;
    for (const char* part : {"train", "val"}) {
        image(folder.path() / part / "1.png");
        folder.file(std::string(part) + "/labels.csv", "file,a,b,c,d\n1.png,0,0,4,2\n");
    }
    OpenedData data = open(folder.path(), "job: locator\n");
    std::vector<float> pixels(3 * 320 * 160), points(4);
    std::array<std::byte*, 2> places{reinterpret_cast<std::byte*>(pixels.data()),
                                     reinterpret_cast<std::byte*>(points.data())};
    SampleCost cost;
    for (const auto& part : {data.training, data.validation}) {
        part->write({}, *part->make_scratch(), places, cost);
        EXPECT_EQ(points, (std::vector<float>{0, 0, 4 * 320.0f / 40, 2 * 160.0f / 30}));
    }
}

TEST(OpenTest, TheCacheChangesNoBatch) {
    TemporaryFolder folder;
    for (int i = 0; i < 20; ++i)
        image(folder.path() / "data" / (i % 2 ? "cat" : "dog") / fmt::format("{:02}.png", i));
    auto load = [&](const std::string& cache) {
        OpenedData data = open_data(
            settings_of(fmt::format("data: {}\njob: classifier\nimage_size: 16\ncache: {}\n",
                                    (folder.path() / "data").string(), cache)),
            {.memory_bytes = 1 << 20, .disk_bytes = 1 << 20, .folder = folder.path() / "cache"});
        NullRecorder recorder;
        Loader loader(data.training, {.batch_size = 6, .workers = 1}, recorder);
        std::string bytes;
        for (int i = 0; i < 9; ++i) {
            std::optional<Batch> batch = loader.next();
            if (!batch) continue;
            bytes.append(reinterpret_cast<const char*>(batch->fields[0].data), 6 * 16 * 16 * 4);
        }
        return std::pair(bytes, loader.stats().cache_hits > 0);
    };
    std::string plain = load("off").first;
    EXPECT_EQ(load("ram"), std::pair(plain, true));
    EXPECT_EQ(load("disk"), std::pair(plain, true));
    EXPECT_THROW((void)load("maybe"), UserError);
}

TEST(OpenTest, FoldersOfPartsAreTaken) {
    TemporaryFolder folder;
    for (const char* part : {"train", "val"}) {
        for (const char* side : {"input", "target"}) image(folder.path() / part / side / "1.png");
    }
    OpenedData data = open(folder.path(), "job: restoration\npatch_size: 16\n");
    EXPECT_EQ(data.what, "pairs of images");
    EXPECT_EQ(data.training->size(), 1);
    EXPECT_EQ(data.validation->size(), 1);
    EXPECT_EQ(data.training->fields()[1].shape, (std::vector<std::int64_t>{3, 16, 16}));
}

TEST(OpenTest, MissingDataNamesThePlaceAndTheVerbThatMakesIt) {
    try {
        (void)open("nowhere/at/all", "job: classifier\n");
        FAIL() << "the folder is not there";
    } catch (const UserError& error) {
        EXPECT_STREQ(error.what(),
                     "error: c.yaml:1:7: data: \"nowhere/at/all\" does not exist\n"
                     "  expected: a folder of images, tar or npy files, or a CSV, npy or npz file\n"
                     "  fix:      saturate data make classifier");
    }
    EXPECT_THROW((void)open_data(settings_of("batch_size: 4\n")), UserError);
}

std::string refusal(const fs::path& data, const std::string& more) {
    try {
        (void)open(data, more);
        return "";
    } catch (const UserError& error) {
        return error.what();
    }
}

TEST(OpenTest, DataOfAnotherKindIsNamed) {
    TemporaryFolder folder;
    fs::path table = folder.file("t.csv", "a,b\n1,2\n");
    fs::create_directory(folder.path() / "empty");
    EXPECT_EQ(refusal(table, "job: classifier\n"),
              fmt::format("error: c.yaml:1:7: data: \"{}\" is a file\n"
                          "  expected: a folder of images or tar files\n"
                          "  fix:      saturate data make classifier",
                          table.string()));
    EXPECT_EQ(refusal(folder.path(), "job: sequence\n"),
              fmt::format("error: c.yaml:1:7: data: \"{}\" is a folder\n"
                          "  expected: a table, CSV or npy, rows by time\n"
                          "  fix:      saturate data make sequence",
                          folder.path().string()));
    EXPECT_EQ(refusal(folder.path() / "empty", "job: classifier\n"),
              fmt::format("error: {}/empty: contains no images\n"
                          "  expected: files that end in .jpg, .jpeg, .png, .webp",
                          folder.path().string()));
}

TEST(OpenTest, ClassesToValidateWithHaveTheLabelsOfTraining) {
    TemporaryFolder folder;
    for (const char* name : {"train/a/1.png", "train/b/1.png", "train/c/1.png", "val/c/1.png"})
        image(folder.path() / name);
    OpenedData data = open(folder.path(), "job: classifier\nimage_size: 16\n");
    std::vector<float> pixels(16 * 16);
    std::int64_t label = 0;
    std::array<std::byte*, 2> places{reinterpret_cast<std::byte*>(pixels.data()),
                                     reinterpret_cast<std::byte*>(&label)};
    SampleCost cost;
    data.validation->write({}, *data.validation->make_scratch(), places, cost);
    EXPECT_EQ(label, 2);
    image(folder.path() / "val/d/1.png");
    EXPECT_EQ(refusal(folder.path(), "job: classifier\n"),
              fmt::format("error: {}/val: the class \"d\"\n"
                          "  expected: one of the training classes: a, b, c",
                          folder.path().string()));
}

TEST(OpenTest, LoaderSettingsComeFromTheConfiguration) {
    LoaderSettings settings = loader_settings(
        settings_of("batch_size: 7\nnum_workers: 3\nprefetch_factor: 5\nseed: 11\n"));
    EXPECT_EQ(settings.batch_size, 7);
    EXPECT_EQ(settings.workers, 3);
    EXPECT_EQ(settings.prefetch_factor, 5);
    EXPECT_EQ(settings.seed, 11u);
    EXPECT_EQ(loader_settings(settings_of("batch_size: 7\nnum_workers: auto\n")).workers, -1);
}

}  // namespace
}  // namespace saturate
