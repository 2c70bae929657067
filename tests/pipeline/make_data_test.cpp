// SPDX-License-Identifier: Apache-2.0
// Data for the reference jobs: the same from the same seed, read back by the job's own sources, and
// with something in it to learn.
#include "pipeline/make_data.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "config/document.h"
#include "pipeline/open.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

MadeData make(const std::string& job, const fs::path& out, std::int64_t samples,
              std::uint64_t seed = 1) {
    return make_data({.job = job, .out = out, .samples = samples, .seed = seed},
                     [](std::int64_t, std::int64_t) {});
}

OpenedData open(const TemporaryFolder& folder, const std::string& job, const fs::path& data) {
    fs::path config = folder.file("c.yaml", "job: " + job + "\ndata: " + data.string() +
                                                "\npatch_size: 32\nwindow_size: 24\n");
    return open_data(Settings::read(Document::read(config)));
}

TEST(MakeDataTest, EveryJobsDataIsReadByItsSource) {
    TemporaryFolder folder;
    struct Case {
        const char* job;
        std::int64_t samples, training;
        std::vector<std::vector<std::int64_t>> shapes;
    };
    for (const Case& one : {Case{"restoration", 20, 18, {{3, 32, 32}, {3, 32, 32}}},
                            Case{"locator", 20, 18, {{3, 160, 320}, {4}}},
                            Case{"classifier", 200, 180, {{1, 128, 128}, {}}},
                            Case{"sequence", 500, 400 - 24, {{24, 16}, {}}},
                            Case{"window_cnn", 500, 400 - 24, {{1, 24, 16}, {}}}}) {
        fs::path out = folder.path() / one.job;
        MadeData made = make(one.job, out, one.samples);
        EXPECT_EQ(made.training + made.validation, one.samples) << one.job;
        OpenedData data = open(folder, one.job, out);
        EXPECT_EQ(data.training->size(), one.training) << one.job;
        ASSERT_NE(data.validation, nullptr) << one.job;
        ASSERT_EQ(data.training->fields().size(), one.shapes.size());
        for (std::size_t i = 0; i < one.shapes.size(); ++i)
            EXPECT_EQ(data.training->fields()[i].shape, one.shapes[i]) << one.job;
    }
}

TEST(MakeDataTest, TheSameSeedGivesTheSameFilesAndAnotherSeedOthers) {
    TemporaryFolder folder;
    for (const char* name : {"a", "b"}) make("locator", folder.path() / name, 3, 5);
    make("locator", folder.path() / "c", 3, 6);
    auto read = [&](const char* name, const char* file) {
        return read_file(folder.path() / name / "train" / file, 1 << 20, "a test file");
    };
    for (const char* file : {"000001.jpg", "labels.csv"}) {
        EXPECT_EQ(read("a", file), read("b", file));
        EXPECT_NE(read("a", file), read("c", file));
    }
}

TEST(MakeDataTest, PointsLieInThePictureAndPicturesDiffer) {
    TemporaryFolder folder;
    make("locator", folder.path() / "l", 12);
    OpenedData data = open(folder, "locator", folder.path() / "l");
    auto scratch = data.training->make_scratch();
    std::vector<float> image(3 * 160 * 320), before(image.size());
    for (std::int64_t i = 0; i < data.training->size(); ++i) {
        float points[4] = {};
        std::byte* places[] = {reinterpret_cast<std::byte*>(image.data()),
                               reinterpret_cast<std::byte*>(points)};
        SampleCost cost;
        data.training->write({.index = i}, *scratch, places, cost);
        EXPECT_GT(points[0], 160);  // the hole is on the right, the piece on the left
        EXPECT_LT(points[0], 320);
        EXPECT_LT(points[2], 160);
        EXPECT_GT(points[2], 0);
        EXPECT_NE(image, before);
        before = image;
    }
}

// The input has lost detail, not everything: 20 to 45 dB, as a photograph enlarged twice.
TEST(MakeDataTest, RestorationInputsLackDetail) {
    TemporaryFolder folder;
    make("restoration", folder.path() / "r", 4);
    OpenedData data = open(folder, "restoration", folder.path() / "r");
    auto scratch = data.training->make_scratch();
    std::vector<float> input(3 * 32 * 32), target(input.size());
    double error = 0;
    for (std::int64_t i = 0; i < data.training->size(); ++i) {
        std::byte* places[] = {reinterpret_cast<std::byte*>(input.data()),
                               reinterpret_cast<std::byte*>(target.data())};
        SampleCost cost;
        data.training->write({.index = i}, *scratch, places, cost);
        for (std::size_t k = 0; k < input.size(); ++k)
            error += std::pow(input[k] - target[k], 2) / static_cast<double>(input.size());
    }
    double decibels = -10 * std::log10(error / static_cast<double>(data.training->size()));
    EXPECT_GT(decibels, 20);
    EXPECT_LT(decibels, 45);
}

TEST(MakeDataTest, WhatIsThereIsNotOverwritten) {
    TemporaryFolder folder;
    fs::path file = folder.file("t.csv", "mine");
    try {
        make("sequence", file, 10);
        FAIL();
    } catch (const std::exception& error) {
        EXPECT_EQ(error.what(), "error: " + file.string() +
                                    ": the file already exists\n  expected: a file that does not "
                                    "exist yet\n  fix:      choose another with -o, or remove it");
    }
    EXPECT_EQ(read_file(file, 100, "a test file"), "mine");
    EXPECT_THROW(make("classifier", folder.path(), 10), std::exception);
}

TEST(MakeDataTest, AMistypedJobIsSuggested) {
    try {
        make("locater", "x", 1);
        FAIL();
    } catch (const std::exception& error) {
        EXPECT_STREQ(error.what(),
                     "error: there is no data to make for \"locater\"\n"
                     "  expected: restoration, locator, classifier, sequence, window_cnn\n"
                     "  fix:      saturate data make locator");
    }
}

}  // namespace
}  // namespace saturate
