// SPDX-License-Identifier: Apache-2.0
// Transforms beside torchvision's v2 on the same parameters. Where there is a Python with PyTorch
// all pixels are compared; everywhere a few of its values that were recorded are
// (SATURATE_RECORD=1 writes them anew).
#include "pipeline/transform.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "pipeline/image_stage.h"
#include "pipeline/image_support.h"

namespace saturate {
namespace {

struct Case {
    std::string name;
    ImageTransform transform;
    ImageSize size;
    SampleDraw draw;
};

ImageTransform base_of(int width, int height, Fit fit, int channels = 3) {
    ImageTransform transform;
    transform.width = width;
    transform.height = height;
    transform.fit = fit;
    transform.decode.channels = channels;
    return transform;
}

std::vector<Case> cases() {
    std::vector<Case> all;
    auto add = [&](std::string name, ImageTransform transform, ImageSize size, int index = 0) {
        all.push_back({std::move(name), std::move(transform), size, {11, 2, index}});
    };
    add("down", base_of(64, 48, Fit::stretch), {163, 121});
    add("up", base_of(100, 90, Fit::stretch), {37, 23});
    add("grey_down", base_of(50, 33, Fit::stretch, 1), {163, 121});
    add("identity", base_of(40, 30, Fit::stretch), {40, 30});
    add("tiny", base_of(5, 3, Fit::stretch), {163, 121});
    add("from_one", base_of(9, 9, Fit::stretch), {1, 2});
    add("middle", base_of(56, 56, Fit::shorter_side), {163, 121});
    all.back().transform.resize_to = 64;
    add("middle_tall", base_of(56, 40, Fit::shorter_side), {90, 333});
    all.back().transform.resize_to = 64;
    ImageTransform usual = base_of(64, 64, Fit::random_resized_crop);
    usual.flip_horizontal = usual.flip_vertical = 0.5;
    usual.mean = {0.485f, 0.456f, 0.406f};
    usual.deviation = {0.229f, 0.224f, 0.225f};
    for (int i = 0; i < 8; ++i) add(fmt::format("crop_{}", i), usual, {163, 121}, i);
    ImageTransform cubic = usual;
    cubic.interpolation = Interpolation::bicubic;
    for (int i = 0; i < 4; ++i) add(fmt::format("cubic_{}", i), cubic, {163, 121}, i);
    ImageTransform padded = base_of(72, 56, Fit::random_crop);
    padded.pad = 12;
    padded.pad_value = 77;
    padded.flip_horizontal = 0.5;
    for (int i = 0; i < 4; ++i) add(fmt::format("padded_{}", i), padded, {80, 60}, i);
    padded.fit = Fit::centre_crop;
    padded.pad = 0;
    add("centre_padded", padded, {50, 41});
    ImageTransform jittered = base_of(64, 64, Fit::random_resized_crop);
    jittered.jitter = {0.4, 0.4, 0.4, 0.2};
    for (int i = 0; i < 6; ++i) add(fmt::format("jitter_{}", i), jittered, {163, 121}, i);
    return all;
}

std::string file_of(const Case& c) {
    return encode_png(
        make_picture(c.size.width, c.size.height, c.transform.decode.channels).view());
}

std::vector<float> ours(const Case& c) {
    const ImageTransform& t = c.transform;
    std::vector<float> out(static_cast<std::size_t>(t.width) * t.height * t.decode.channels);
    ImageStage stage(t);
    SampleCost cost;
    std::string file = file_of(c);
    stage.write(bytes_of(file), c.draw, reinterpret_cast<std::byte*>(out.data()), cost);
    return out;
}

Json described(const Case& c, const std::string& file) {
    ImagePlan plan = plan_image(c.transform, c.size, c.draw);
    const ImageTransform& t = c.transform;
    bool crops = t.fit == Fit::random_crop || t.fit == Fit::centre_crop;
    // Of a padded crop, where its corner lies in the image, before it is mirrored.
    int x = plan.across.mirrored ? t.width - plan.place.x - plan.place.width : plan.place.x;
    int y = plan.down.mirrored ? t.height - plan.place.y - plan.place.height : plan.place.y;
    Json jitter = Json::array();
    Json::Array steps;
    if (plan.has_jitter) {
        for (ColourStep step : plan.order) {
            switch (step) {
                case ColourStep::brightness:
                    steps.push_back(Json::array({"brightness", plan.brightness}));
                    break;
                case ColourStep::contrast:
                    steps.push_back(Json::array({"contrast", plan.contrast}));
                    break;
                case ColourStep::saturation:
                    steps.push_back(Json::array({"saturation", plan.saturation}));
                    break;
                case ColourStep::hue:
                    steps.push_back(Json::array({"hue", plan.hue}));
                    break;
            }
        }
    }
    std::vector<double> mean(t.mean.begin(), t.mean.end());
    std::vector<double> deviation(t.deviation.begin(), t.deviation.end());
    return Json::object({{"name", c.name},
                         {"file", file},
                         {"channels", t.decode.channels},
                         {"width", t.width},
                         {"height", t.height},
                         {"bicubic", t.interpolation == Interpolation::bicubic},
                         {"shorter", t.fit == Fit::shorter_side ? t.resize_to : 0},
                         {"pad_crop", crops},
                         {"pad_value", t.pad_value},
                         {"left", crops ? plan.across.start - x : plan.across.start},
                         {"top", crops ? plan.down.start - y : plan.down.start},
                         {"crop_width", plan.across.length},
                         {"crop_height", plan.down.length},
                         {"mirror", plan.across.mirrored},
                         {"upend", plan.down.mirrored},
                         {"jitter", Json(steps)},
                         {"mean", Json::array_of(mean)},
                         {"deviation", Json::array_of(deviation)}});
}

// Both sides add up at most a few dozen products in float: about 20 roundings of 6e-8 of a value up
// to 1, and up to 1 / 0.224 more after normalising: 5e-6. torchvision computes the place and weight
// of a tap in float, which moves a tap by up to 1e-5 of its weight for coordinates in the hundreds.
// Hue divides by the difference of the channels, which is where jitter loses another digit.
double tolerance_of(const Case& c) { return c.transform.jitter.any() ? 2e-4 : 5e-5; }

std::filesystem::path recorded_path() {
    return std::filesystem::path(SATURATE_SOURCE_DIR) / "tests/pipeline/data/torchvision.csv";
}

// Which values of a result are recorded: 12, spread over all of it.
std::vector<std::size_t> probes(std::size_t size) {
    std::vector<std::size_t> at;
    for (std::size_t i = 0; i < 12; ++i) at.push_back((i * 7919 + 13) % size);
    return at;
}

TEST(TransformTest, EqualsRecordedValuesOfTorchvision) {
    std::map<std::string, std::vector<double>> recorded;
    std::string text = read_file(recorded_path(), 1 << 20, "recorded values");
    for (std::string_view line : split(text, '\n')) {
        std::vector<std::string_view> cells = split(line, ',');
        for (std::size_t i = 1; i < cells.size(); ++i)
            recorded[std::string(cells[0])].push_back(*parse_number(cells[i]));
    }
    for (const Case& c : cases()) {
        std::vector<float> seen = ours(c);
        const std::vector<double>& expected = recorded[c.name];
        ASSERT_EQ(expected.size(), 12u) << c.name;
        std::vector<std::size_t> at = probes(seen.size());
        for (std::size_t i = 0; i < at.size(); ++i)
            EXPECT_NEAR(seen[at[i]], expected[i], tolerance_of(c)) << c.name << " at " << at[i];
    }
}

template <typename T>
std::vector<T> values_of(const std::filesystem::path& path) {
    std::string text = read_file(path, 1 << 28, "values");
    std::vector<T> values(text.size() / sizeof(T));
    std::memcpy(values.data(), text.data(), text.size());
    return values;
}

TEST(TransformTest, EqualsTorchvisionPixelByPixel) {
    std::string root = SATURATE_SOURCE_DIR;
    Ran found = run({root + "/tests/support/python_torch"});
    if (found.status != 0) GTEST_SKIP() << found.err;
    TemporaryFolder folder;
    Json::Array list;
    for (const Case& c : cases())
        list.push_back(described(c, folder.file(c.name + ".png", file_of(c)).string()));
    folder.file("cases.json", Json(list).line());
    Ran ran =
        run({std::string(trim(found.out)), "-B", root + "/tests/pipeline/torchvision_transforms.py",
             (folder.path() / "cases.json").string(), folder.path().string()});
    ASSERT_EQ(ran.status, 0) << ran.err;
    std::string recorded;
    for (Case& c : cases()) {
        std::vector<float> seen = ours(c);
        auto expected = values_of<float>(folder.path() / (c.name + ".f32"));
        ASSERT_EQ(seen.size(), expected.size()) << c.name;
        double worst = 0;
        for (std::size_t i = 0; i < seen.size(); ++i)
            worst = std::fmax(worst, std::abs(seen[i] - expected[i]));
        EXPECT_LE(worst, tolerance_of(c)) << c.name;
        recorded += c.name;
        for (std::size_t i : probes(expected.size()))
            recorded += fmt::format(",{:.7g}", expected[i]);
        recorded += "\n";

        // 8-bit images: torchvision rounds between the two directions of a resize and after it,
        // half a level each time; we round once. So a pixel may differ by one level. Jitter
        // rounds down after each of up to four steps and spreads what was lost before: not here.
        if (c.transform.jitter.any()) continue;
        Case rounded = c;
        rounded.transform.element = Element::uint8;
        rounded.transform.mean = rounded.transform.deviation = {};
        std::vector<std::uint8_t> bytes(seen.size());
        ImageStage stage(rounded.transform);
        SampleCost cost;
        std::string file = file_of(c);
        stage.write(bytes_of(file), c.draw, reinterpret_cast<std::byte*>(bytes.data()), cost);
        auto levels = values_of<std::uint8_t>(folder.path() / (c.name + ".u8"));
        int most = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i)
            most = std::max(most, std::abs(bytes[i] - levels[i]));
        EXPECT_LE(most, 1) << c.name;
    }
    if (std::getenv("SATURATE_RECORD")) write_file_whole(recorded_path(), recorded);
}

TEST(TransformTest, ScaledDecodingIsNearAndOnlyWhereTheResultIsSmall) {
    std::string file = encode_jpeg(make_picture(400, 320, 3).view());
    for (int side : {300, 150, 90, 45}) {
        std::vector<float> results[2];
        for (JpegDecode decode : {JpegDecode::region, JpegDecode::scaled}) {
            ImageTransform transform = base_of(side, side, Fit::stretch);
            transform.decode.jpeg = decode;
            std::vector<float>& out = results[decode == JpegDecode::scaled];
            out.resize(static_cast<std::size_t>(side) * side * 3);
            SampleCost cost;
            ImageStage(transform).write(bytes_of(file), {},
                                        reinterpret_cast<std::byte*>(out.data()), cost);
        }
        double sum = 0;
        for (std::size_t i = 0; i < results[0].size(); ++i)
            sum += std::abs(results[0][i] - results[1][i]) * 255;
        double mean = sum / static_cast<double>(results[0].size());
        EXPECT_LT(mean, 2) << side;
        EXPECT_EQ(mean > 0, side < 160) << side;  // 320 high: half of it is 160
    }
}

// Every way of storing a result holds the same picture.
TEST(TransformTest, LayoutAndElementOnlyChangeHowItIsStored) {
    for (int width : {24, 21}) {  // with and without rows that end where the kernels end
        for (int channels : {1, 3}) {
            Case c{"", base_of(width, 17, Fit::stretch, channels), {60, 50}, {}};
            std::vector<float> planes = ours(c);
            c.transform.channels_last = true;
            std::vector<float> pixels = ours(c);
            std::string file = file_of(c);
            SampleCost cost;
            c.transform.element = Element::bfloat16;
            std::vector<std::uint16_t> halves(planes.size());
            ImageStage(c.transform)
                .write(bytes_of(file), c.draw, reinterpret_cast<std::byte*>(halves.data()), cost);
            c.transform.element = Element::uint8;
            std::vector<std::uint8_t> bytes(planes.size());
            ImageStage(c.transform)
                .write(bytes_of(file), c.draw, reinterpret_cast<std::byte*>(bytes.data()), cost);
            std::size_t count = static_cast<std::size_t>(width) * 17;
            for (std::size_t i = 0; i < planes.size(); ++i) {
                std::size_t at = i % count * static_cast<std::size_t>(channels) + i / count;
                ASSERT_EQ(pixels[at], planes[i]);
                // bfloat16 keeps 8 bits: half a unit of the last is 1 / 512 of the value.
                float half = std::bit_cast<float>(static_cast<std::uint32_t>(halves[at]) << 16);
                ASSERT_NEAR(half, planes[i], planes[i] / 256 + 1e-6);
                ASSERT_NEAR(bytes[at], planes[i] * 255, 0.5001);
            }
        }
    }
}

TEST(TransformTest, KernelsOfAllProcessorsAgree) {
    if (!avx2_resize_kernels()) GTEST_SKIP() << "this processor has no AVX2";
    const ResizeKernels& plain = portable_resize_kernels();
    std::vector<std::uint8_t> rows(4 * 100);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint8_t>(i * 37);
    float weights[4] = {0.1f, 0.4f, 0.3f, 0.2f}, a[100], b[100];
    for (std::size_t count : {1u, 15u, 16u, 33u, 100u}) {
        plain.mix_rows(rows.data(), 100, weights, 4, count, a);
        avx2_resize_kernels()->mix_rows(rows.data(), 100, weights, 4, count, b);
        for (std::size_t i = 0; i < count; ++i) ASSERT_NEAR(a[i], b[i], 1e-3);
    }
    for (int channels : {1, 3}) {
        AcrossTable table{channels, 8, 2, false, {}, {}};
        for (int x = 0; x < 8; ++x) table.first.push_back(x * 3 % 7 * channels);
        for (int i = 0; i < (channels == 3 ? 64 : 16); ++i)
            table.weights.push_back(static_cast<float>(channels == 3 ? i / 4 : i) * 0.01f);
        float row[64], out[2][3][8];
        for (int i = 0; i < 64; ++i) row[i] = static_cast<float>(i * i % 251);
        for (int k = 0; k < 2; ++k) {
            const ResizeKernels& kernels = k == 0 ? plain : *avx2_resize_kernels();
            float* to[3] = {out[k][0], out[k][1], out[k][2]};
            (channels == 3 ? kernels.across_rgb : kernels.across_grey)(row, table,
                                                                       {{1, 2, 3}, {4, 5, 6}}, to);
        }
        for (int c = 0; c < channels; ++c)
            for (int x = 0; x < 8; ++x) ASSERT_NEAR(out[0][c][x], out[1][c][x], 1e-3);
    }
}

TEST(TransformTest, DrawsDependOnSeedEpochAndSampleAlone) {
    ImageTransform transform = base_of(64, 64, Fit::random_resized_crop);
    auto start = [&](SampleDraw draw) { return plan_image(transform, {500, 375}, draw).across; };
    EXPECT_EQ(start({1, 2, 3}), start({1, 2, 3}));
    EXPECT_NE(start({1, 2, 3}), start({2, 2, 3}));
    EXPECT_NE(start({1, 2, 3}), start({1, 3, 3}));
    EXPECT_NE(start({1, 2, 3}), start({1, 2, 4}));
}

TEST(TransformTest, SettingsThatCannotBeAreRefused) {
    auto said = [](auto change) -> std::string {
        ImageTransform transform;
        change(transform);
        try {
            transform.check();
            return "";
        } catch (const UserError& error) {
            return error.what();
        }
    };
    EXPECT_EQ(said([](ImageTransform&) {}), "");
    EXPECT_EQ(said([](ImageTransform& t) { t.mean = {0.5f}; }),
              "error: 1 means and 0 deviations for 3 channels\n"
              "  expected: one of each per channel, or none");
    EXPECT_EQ(said([](ImageTransform& t) {
                  t.deviation = {1, 0, 1};
              }),
              "error: a deviation that is not positive\n  expected: more than 0");
    EXPECT_EQ(said([](ImageTransform& t) { t.width = 0; }),
              "error: images of 0x224 were requested\n  expected: 1 to 65535 on each side");
    EXPECT_EQ(said([](ImageTransform& t) {
                  t.element = Element::uint8;
                  t.mean = {0, 0, 0};
              }),
              "error: uint8 images cannot be normalised\n"
              "  expected: float32 or bfloat16, or no mean and deviation");
    EXPECT_EQ(said([](ImageTransform& t) {
                  t.fit = Fit::shorter_side;
                  t.resize_to = 200;
              }),
              "error: the shorter side is resized to 200, then 224x224 is cut out\n"
              "  expected: a shorter side no smaller than the crop");
}

}  // namespace
}  // namespace saturate
