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

}  // namespace
}  // namespace saturate
