// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "support/run.h"

namespace saturate {
namespace {

namespace fs = std::filesystem;

Checkpoint some(std::int64_t step) {
    return {.step = step,
            .model = {{"a.weight", torch::arange(6, torch::kFloat).reshape({2, 3})},
                      {"a.count", torch::full({}, 7, torch::kLong)}},
            .state = {{"exp_avg.a.weight", torch::ones({2, 3})}, {"empty", torch::zeros({0, 4})}},
            .facts = Json::object({{"epoch", 2}})};
}

std::string said(const std::function<void()>& action) {
    try {
        action();
    } catch (const UserError& error) {
        return error.what();
    }
    return "nothing";
}

void cut(const fs::path& file, std::uintmax_t bytes) { fs::resize_file(file, bytes); }

TEST(CheckpointTest, ComesBackAsItWas) {
    TemporaryFolder folder;
    fs::path path = write_checkpoint(folder.path(), some(12));
    EXPECT_EQ(path.filename(), "step_0000000012");
    Checkpoint back = read_checkpoint(path);
    EXPECT_EQ(back.step, 12);
    EXPECT_EQ(back.facts["epoch"].integer(), 2);
    ASSERT_EQ(back.model.size(), 2u);
    EXPECT_TRUE(torch::equal(back.model[0].second, some(12).model[0].second));
    EXPECT_TRUE(torch::equal(back.model[1].second, some(12).model[1].second));
    EXPECT_EQ(back.state[1].second.sizes(), (std::vector<std::int64_t>{0, 4}));
}

TEST(CheckpointTest, TornOneIsPassedOverForTheOneBefore) {
    for (const char* file : {"model.safetensors", "state.safetensors", "state.json"}) {
        TemporaryFolder folder;
        write_checkpoint(folder.path(), some(1));
        fs::path newer = write_checkpoint(folder.path(), some(2));
        cut(newer / file, fs::file_size(newer / file) - 5);
        auto found = find_checkpoint(folder.path());
        ASSERT_TRUE(found);
        EXPECT_EQ(found->checkpoint.step, 1);
        ASSERT_EQ(found->skipped.size(), 1u);
        EXPECT_TRUE(found->skipped[0].starts_with((newer / file).string())) << found->skipped[0];
    }
}

TEST(CheckpointTest, SaysHowItIsTorn) {
    TemporaryFolder folder;
    fs::path path = write_checkpoint(folder.path(), some(1));
    fs::path file = path / "model.safetensors";
    auto size = fs::file_size(file);
    cut(file, size - 1);
    EXPECT_EQ(said([&] { (void)read_checkpoint(path); }),
              "error: " + file.string() + ": incomplete: " + std::to_string(size - 1) + " bytes of " +
                  std::to_string(size) +
                  "\n  expected: the file as it was written\n"
                  "  fix:      resume from another checkpoint of this folder");
    EXPECT_NE(said([&] { (void)find_checkpoint(folder.path()); }), "nothing");
}

TEST(CheckpointTest, ChangedBitIsSeen) {
    TemporaryFolder folder;
    fs::path path = write_checkpoint(folder.path(), some(1));
    fs::path file = path / "model.safetensors";
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(-3, std::ios::end);
    stream.put('x');
    stream.close();
    EXPECT_EQ(said([&] { (void)read_checkpoint(path); }),
              "error: " + file.string() +
                  ": damaged: its content is not what was written\n"
                  "  expected: the file as it was written\n"
                  "  fix:      resume from another checkpoint of this folder");
}

TEST(CheckpointTest, LeftoversOfACrashAreNotCheckpoints) {
    TemporaryFolder folder;
    write_checkpoint(folder.path(), some(1));
    fs::create_directory(folder.path() / "unfinished_step_0000000002");
    EXPECT_EQ(find_checkpoint(folder.path())->checkpoint.step, 1);
    prune_checkpoints(folder.path(), 3);
    EXPECT_FALSE(fs::exists(folder.path() / "unfinished_step_0000000002"));
}

TEST(CheckpointTest, KeepsTheNewestAndTheBest) {
    TemporaryFolder folder;
    for (std::int64_t step : {1, 2, 3, 4, 5}) {
        fs::path path = write_checkpoint(folder.path(), some(step));
        if (step == 2) mark_best(folder.path(), path);
    }
    prune_checkpoints(folder.path(), 2);
    std::vector<std::string> kept;
    for (const fs::path& path : list_checkpoints(folder.path())) kept.push_back(path.filename());
    EXPECT_EQ(kept,
              (std::vector<std::string>{"step_0000000005", "step_0000000004", "step_0000000002"}));
    EXPECT_EQ(read_checkpoint(folder.path() / "best").step, 2);
}

TEST(CheckpointTest, EmptyOrMissingFolderHasNone) {
    TemporaryFolder folder;
    EXPECT_FALSE(find_checkpoint(folder.path()));
    EXPECT_FALSE(find_checkpoint(folder.path() / "nowhere"));
}

// A header with sizes that mean harm, each refused with a message and without a large allocation.
std::string file_with(const std::string& header, std::size_t data, std::uint64_t claimed = 0) {
    std::uint64_t length = claimed > 0 ? claimed : header.size();
    std::string out(reinterpret_cast<const char*>(&length), 8);
    return out + header + std::string(data, '\0');
}

TEST(SafetensorsTest, RefusesHostileHeaders) {
    TemporaryFolder folder;
    auto answer = [&](const std::string& content) {
        fs::path file = folder.file("x.safetensors", content);
        std::string text = said([&] { (void)read_safetensors(file); });
        std::size_t at = text.find(": ", text.find("x.safetensors"));
        return text.substr(at + 2, text.find('\n') - at - 2);
    };
    EXPECT_EQ(answer("abc"), "3 bytes are too few for a header");
    EXPECT_EQ(answer(file_with("{}", 0, 1ull << 63)),
              "its header claims 9223372036854775808 bytes, but the file has 10");
    EXPECT_EQ(answer(file_with("[]", 0)), "its header is not an object");
    EXPECT_EQ(
        answer(file_with(
            R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})", 4)),
        "the shape of tensor \"a\" is too large for any file");
    EXPECT_EQ(answer(file_with(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,400]}})", 4)),
              "tensor \"a\" lies outside the file");
    EXPECT_EQ(answer(file_with(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4)),
              "the shape of tensor \"a\" is not made of whole numbers");
    EXPECT_EQ(answer(file_with(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4)),
              "tensor \"a\" has 4 bytes for a shape of 8");
    EXPECT_EQ(answer(file_with(R"({"a":{"dtype":"X9","shape":[1],"data_offsets":[0,4]}})", 4)),
              "tensor \"a\" has type \"X9\"");
    EXPECT_EQ(answer(file_with(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8)),
              "tensor \"a\" begins at 4 instead of 0");
    EXPECT_EQ(answer(file_with(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                               R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                               4)),
              "tensor \"b\" begins at 0 instead of 4");
    EXPECT_EQ(answer(file_with(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 9)),
              "5 bytes belong to no tensor");
    EXPECT_EQ(answer(file_with(R"({"a":{"dtype":"F32"}})", 4)), "tensor \"a\" has no shape");
}

// Whatever bytes: an answer or a UserError, never a crash, a bug or a huge allocation.
TEST(SafetensorsTest, SurvivesRandomDamage) {
    TemporaryFolder folder;
    fs::path good = folder.path() / "good.safetensors";
    write_safetensors(good, some(1).model);
    std::string content = read_file(good, 1 << 20, "a test file");
    std::mt19937 random(7);
    int refused = 0;
    for (int round = 0; round < 3000; ++round) {
        std::string damaged = content;
        int changes = 1 + static_cast<int>(random() % 4);
        for (int i = 0; i < changes; ++i)
            damaged[random() % damaged.size()] = static_cast<char>(random());
        if (random() % 4 == 0) damaged.resize(random() % damaged.size());
        fs::path file = folder.file("damaged", damaged);
        try {
            (void)read_safetensors(file);
        } catch (const UserError&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace saturate
