// SPDX-License-Identifier: Apache-2.0
#include "pipeline/image_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>

#include "base/error.h"
#include "pipeline/image_support.h"

namespace saturate {
namespace {

ImageTransform grey(int width, int height) {
    ImageTransform transform;
    transform.width = width;
    transform.height = height;
    transform.decode.channels = 1;
    return transform;
}

std::string flat_png(int value) {
    Picture picture{std::vector<std::uint8_t>(64, static_cast<std::uint8_t>(value)), {8, 8}, 1};
    return encode_png(picture.view());
}

struct Written {
    std::vector<float> image = std::vector<float>(64);
    std::vector<float> second = std::vector<float>(64);
    std::int64_t label = -1;
};

Written write_one(const ImageFolder& folder, std::int64_t index) {
    Written written;
    auto scratch = folder.make_scratch();
    SampleCost cost;
    bool labels = folder.fields().size() > 1 && folder.fields()[1].element == Element::int64;
    std::byte* places[] = {reinterpret_cast<std::byte*>(written.image.data()),
                           labels ? reinterpret_cast<std::byte*>(&written.label)
                                  : reinterpret_cast<std::byte*>(written.second.data())};
    folder.write({1, 0, index}, *scratch, places, cost);
    EXPECT_GT(cost.read_bytes, 0);
    return written;
}

std::string refusal(const ImageFolderSettings& settings) {
    try {
        ImageFolder folder(settings);
        return "";
    } catch (const UserError& error) {
        return error.what();
    }
}

TEST(ImageFolderTest, AFolderPerClassGivesImagesAndLabels) {
    TemporaryFolder root;
    root.file("dog/b.png", flat_png(20));
    root.file("dog/deeper/a.PNG", flat_png(30));
    root.file("cat/z.png", flat_png(10));
    root.file("cat/notes.txt", "not an image");
    root.file("cat/.hidden.png", "being written");
    ImageFolder folder({.root = root.path(), .transform = grey(8, 8)});
    EXPECT_EQ(folder.size(), 3);
    EXPECT_EQ(folder.classes(), (std::vector<std::string>{"cat", "dog"}));
    ASSERT_EQ(folder.fields().size(), 2u);
    EXPECT_EQ(folder.fields()[0], (FieldSpec{"image", Element::float32, {1, 8, 8}, false}));
    EXPECT_EQ(folder.fields()[1], (FieldSpec{"label", Element::int64, {}, false}));
    int values[] = {10, 20, 30}, labels[] = {0, 1, 1};
    for (int i = 0; i < 3; ++i) {
        Written written = write_one(folder, i);
        EXPECT_EQ(written.label, labels[i]);
        EXPECT_FLOAT_EQ(written.image[5], static_cast<float>(values[i]) / 255) << i;
    }
    EXPECT_TRUE(folder.name_of(2).ends_with("/dog/deeper/a.PNG")) << folder.name_of(2);
}

TEST(ImageFolderTest, PairsGetTheSameCropAndFlip) {
    TemporaryFolder root;
    Picture picture = make_picture(40, 30, 1);
    root.file("input/x/1.jpg", encode_png(picture.view()));  // told by content, not by name
    root.file("target/x/1.png", encode_png(picture.view()));
    ImageTransform transform = grey(8, 8);
    transform.fit = Fit::random_crop;
    transform.flip_horizontal = 0.5;
    ImageFolder folder(
        {.root = root.path(), .layout = FolderLayout::pairs, .transform = transform});
    ASSERT_EQ(folder.size(), 1);
    Written written = write_one(folder, 0);
    EXPECT_EQ(written.image, written.second);
    EXPECT_EQ(folder.fields()[1].name, "target");

    root.file("input/x/2.jpg", encode_png(picture.view()));
    EXPECT_EQ(refusal({.root = root.path(), .layout = FolderLayout::pairs, .transform = transform}),
              "error: " + root.path().string() + ": 1 of 2 inputs have no target, such as \"" +
                  root.path().string() +
                  "/input/x/2.jpg\"\n  expected: a file of the same name below target");
}

TEST(ImageFolderTest, PairsOfDifferentSizeAreBad) {
    TemporaryFolder root;
    root.file("input/1.png", encode_png(make_picture(40, 30, 1).view()));
    root.file("target/1.png", encode_png(make_picture(40, 31, 1).view()));
    ImageFolder folder(
        {.root = root.path(), .layout = FolderLayout::pairs, .transform = grey(8, 8)});
    try {
        write_one(folder, 0);
        FAIL();
    } catch (const BadSample& bad) {
        EXPECT_STREQ(bad.what(), "the input is 40x30, its target 40x31");
        EXPECT_EQ(bad.sample(), folder.name_of(0));
    }
}

TEST(ImageFolderTest, ATableGivesNumbersPerImage) {
    TemporaryFolder root;
    root.file("images/a.png", flat_png(10));
    root.file("images/b.png", flat_png(20));
    root.file("labels.csv", "file,x,y\r\nimages/b.png,1.5,-2\r\nimages/a.png,0,4\r\n");
    ImageFolder folder(
        {.root = root.path(), .layout = FolderLayout::table, .transform = grey(8, 8)});
    EXPECT_EQ(folder.size(), 2);
    EXPECT_EQ(folder.fields()[1], (FieldSpec{"target", Element::float32, {2}, false}));
    Written written = write_one(folder, 0);
    EXPECT_FLOAT_EQ(written.image[0], 20.0f / 255);
    EXPECT_EQ(written.second[0], 1.5f);
    EXPECT_EQ(written.second[1], -2.0f);

    std::string table = (root.path() / "labels.csv").string();
    auto said = [&](const char* text) {
        root.file("labels.csv", text);
        return refusal(
            {.root = root.path(), .layout = FolderLayout::table, .transform = grey(8, 8)});
    };
    EXPECT_EQ(said("file,x\nimages/c.png,1\n"),
              "error: " + table +
                  ":2: no image \"images/c.png\"\n"
                  "  expected: the path of an image below the folder of the table");
    EXPECT_EQ(said("file,x\nimages/a.png,left\n"), "error: " + table +
                                                       ":2: \"left\" is not a number\n"
                                                       "  expected: a file name, then numbers");
    EXPECT_EQ(said("file,x\nimages/a.png,1,2\n"),
              "error: " + table + ":2: 3 cells\n  expected: 2, as in the header");
    EXPECT_EQ(said("file\n"), "error: " + table +
                                  ":1: a table with one column\n"
                                  "  expected: a header: file, then one name per number");
}

// Points are told in pixels of the file and must be where the picture shows them.
TEST(ImageFolderTest, PointsGoWhereThePictureGoes) {
    TemporaryFolder root;
    root.file("a.png", encode_png(make_picture(40, 20, 1).view()));
    root.file("labels.csv", "file,x1,y1,x2,y2\na.png,10,5,40,20\n");
    ImageFolderSettings settings{.root = root.path(),
                                 .layout = FolderLayout::table,
                                 .transform = grey(8, 8),
                                 .points = true};
    auto points = [&] {
        Written written = write_one(ImageFolder(settings), 0);
        return std::vector<float>(written.second.begin(), written.second.begin() + 4);
    };
    EXPECT_EQ(points(), (std::vector<float>{2, 2, 8, 8}));
    settings.transform.flip_horizontal = 1;
    EXPECT_EQ(points(), (std::vector<float>{6, 2, 0, 8}));
    settings.transform.flip_horizontal = 0;
    settings.transform.fit = Fit::centre_crop;  // from 16, 6 on
    EXPECT_EQ(points(), (std::vector<float>{-6, -1, 24, 14}));
}

TEST(ImageFolderTest, PreparedSamplesBecomeTheSameBatches) {
    TemporaryFolder root;
    Picture picture = make_picture(40, 30, 1);
    root.file("input/1.png", encode_png(picture.view()));
    root.file("target/1.png", encode_png(make_picture(40, 30, 1).view()));
    ImageTransform transform = grey(8, 8);
    transform.fit = Fit::random_resized_crop;
    ImageFolder folder(
        {.root = root.path(), .layout = FolderLayout::pairs, .transform = transform});
    Written direct = write_one(folder, 0), cached;
    auto scratch = folder.make_scratch();
    SampleCost cost;
    std::vector<std::byte> prepared;
    folder.prepare(0, *scratch, prepared, cost);
    EXPECT_EQ(prepared.size(), 2 * (8 + 40 * 30u));
    std::byte* places[] = {reinterpret_cast<std::byte*>(cached.image.data()),
                           reinterpret_cast<std::byte*>(cached.second.data())};
    folder.finish({1, 0, 0}, prepared, *scratch, places, cost);
    EXPECT_EQ(cached.image, direct.image);
    EXPECT_EQ(cached.second, direct.second);
    prepared.resize(prepared.size() - 1);
    EXPECT_THROW(folder.finish({1, 0, 0}, prepared, *scratch, places, cost), BadSample);

    std::string before = folder.identity();
    EXPECT_EQ(folder.identity(), before);
    root.file("input/1.png", encode_png(make_picture(41, 30, 1).view()));
    EXPECT_NE(folder.identity(), before);
}

TEST(ImageFolderTest, BrokenEmptyAndVanishedFilesAreBadSamples) {
    TemporaryFolder root;
    root.file("c/0.png", flat_png(1).substr(0, 40));
    root.file("c/1.png", "");
    auto gone = root.file("c/2.png", flat_png(1));
    ImageFolder folder({.root = root.path(), .transform = grey(8, 8)});
    std::filesystem::remove(gone);
    const char* why[] = {"PNG ends early", "the file is empty",
                         "cannot be read: No such file or directory"};
    for (int i = 0; i < 3; ++i) {
        try {
            write_one(folder, i);
            ADD_FAILURE() << i;
        } catch (const BadSample& bad) {
            EXPECT_STREQ(bad.what(), why[i]);
            EXPECT_EQ(bad.sample(), folder.name_of(i));
        }
    }
}

TEST(ImageFolderTest, SaysWhatIsWrongWithAFolder) {
    TemporaryFolder root;
    std::string path = root.path().string();
    EXPECT_EQ(refusal({.root = root.path() / "none"}),
              "error: " + path +
                  "/none: cannot be listed: No such file or directory\n"
                  "  expected: a folder with images");
    EXPECT_EQ(refusal({.root = root.path()}),
              "error: " + path +
                  ": contains no images\n  expected: files that end in .jpg, .jpeg, .png, .webp");
    root.file("a.png", flat_png(1));
    EXPECT_EQ(
        refusal({.root = root.path()}),
        "error: " + path + ": contains no folders\n  expected: one folder of images per class");
    root.file("cat/b.png", flat_png(1));
    EXPECT_EQ(refusal({.root = root.path()}),
              "error: " + path +
                  ": contains 1 images outside the class folders, such as \"a.png\"\n"
                  "  expected: one folder of images per class, and no images outside them");
    std::filesystem::remove(root.path() / "a.png");
    root.file("dog/c.txt", "");
    EXPECT_EQ(refusal({.root = root.path()}), "error: " + path +
                                                  ": the class \"dog\" has no images\n"
                                                  "  expected: at least one image in each folder");
}

// As if the folder had last changed long ago.
void age(const std::filesystem::path& folder, int seconds) {
    timespec times[2] = {{1'600'000'000 + seconds, 0}, {1'600'000'000 + seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, folder.c_str(), times, 0), 0);
}

TEST(FileListTest, IsRememberedUntilAFolderChanges) {
    TemporaryFolder root, cache;
    root.file("b/2.png", "x");
    root.file("a/1.png", "x");
    age(root.path() / "a", 1);
    age(root.path() / "b", 2);
    age(root.path(), 3);
    FileListSettings settings{.cache_folder = cache.path(), .cache_from = 1};
    FileList first = list_files(root.path(), settings);
    EXPECT_FALSE(first.from_cache());
    FileList second = list_files(root.path(), settings);
    EXPECT_TRUE(second.from_cache());
    settings.cache_from = 3;  // the memory that is there is used
    EXPECT_TRUE(list_files(root.path(), settings).from_cache());
    std::filesystem::remove_all(cache.path());
    (void)list_files(root.path(), settings);
    EXPECT_FALSE(std::filesystem::exists(cache.path()));  // two files: not worth it
    settings.cache_from = 1;
    auto paths = [](const FileList& list) {
        std::vector<std::string> all;
        for (std::int64_t i = 0; i < list.size(); ++i) list.path(i, all.emplace_back());
        return all;
    };
    EXPECT_EQ(paths(first), paths(second));
    ASSERT_EQ(first.size(), 2);
    EXPECT_TRUE(paths(first)[0].ends_with("/a/1.png"));

    root.file("b/3.png", "x");
    FileList third = list_files(root.path(), settings);
    EXPECT_FALSE(third.from_cache());
    EXPECT_EQ(third.size(), 3);
    EXPECT_FALSE(third.unsettled());
    // Changed a moment ago: it might change again within the same tick, so it is not remembered.
    EXPECT_FALSE(list_files(root.path(), settings).from_cache());
}

TEST(FileListTest, ALongListIsRememberedToo) {
    TemporaryFolder root, cache;
    for (int i = 0; i < 6000; ++i)  // 1.4 MB of names
        root.file("a/" + std::string(230, 'n') + std::to_string(i) + ".png", "");
    age(root.path() / "a", 1);
    age(root.path(), 2);
    FileListSettings settings{.cache_folder = cache.path(), .cache_from = 1};
    (void)list_files(root.path(), settings);
    FileList list = list_files(root.path(), settings);
    EXPECT_TRUE(list.from_cache());
    EXPECT_EQ(list.size(), 6000);
}

TEST(FileListTest, ABrokenMemoryIsMadeAgain) {
    TemporaryFolder root, cache;
    root.file("a/1.png", "x");
    root.file("a/2.png", "x");
    age(root.path() / "a", 1);
    age(root.path(), 2);
    FileListSettings settings{.cache_folder = cache.path(), .cache_from = 1};
    (void)list_files(root.path(), settings);
    std::filesystem::path file = std::filesystem::directory_iterator(cache.path())->path();
    std::string text = read_if_there(file);
    for (std::size_t length = 0; length < text.size(); ++length) {
        std::ofstream(file, std::ios::binary) << text.substr(0, length);
        FileList list = list_files(root.path(), settings);
        EXPECT_EQ(list.size(), 2) << length;
        EXPECT_FALSE(list.from_cache()) << length;
    }
}

TEST(FileListTest, ALinkBackToAParentIsNotFollowed) {
    TemporaryFolder root;
    root.file("a/1.png", "x");
    std::filesystem::create_directory_symlink(root.path(), root.path() / "a" / "loop");
    std::filesystem::create_symlink(root.path() / "a" / "1.png", root.path() / "a" / "2.png");
    std::filesystem::create_symlink("nowhere", root.path() / "a" / "3.png");
    EXPECT_EQ(list_files(root.path(), {}).size(), 2);
}

TEST(FileListTest, OrderIsThatOfTheNamesForAnyNumberOfThreads) {
    TemporaryFolder root;
    for (int i = 0; i < 60; ++i)
        root.file("d" + std::to_string(i * 7 % 11) + "/" + std::to_string(i * 37 % 60) + ".png",
                  "");
    auto paths = [&](int threads) {
        FileListSettings settings;
        settings.threads = threads;
        FileList list = list_files(root.path(), settings);
        std::vector<std::string> all;
        for (std::int64_t i = 0; i < list.size(); ++i) list.path(i, all.emplace_back());
        return all;
    };
    EXPECT_EQ(paths(1), paths(8));
    EXPECT_EQ(paths(1).size(), 60u);
}

}  // namespace
}  // namespace saturate
