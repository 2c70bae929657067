// SPDX-License-Identifier: Apache-2.0
#include "pipeline/transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "pipeline/random.h"

namespace saturate {

namespace {

// A stream of random numbers, seeded by all members of a draw.
class DrawRandom {
  public:
    explicit DrawRandom(const SampleDraw& draw)
        : key_(mix(mix(draw.seed, static_cast<std::uint64_t>(draw.epoch)),
                   static_cast<std::uint64_t>(draw.index))) {}
    double uniform() { return unit(mix(key_, ++count_)); }  // [0, 1)
    double between(double low, double high) { return low + (high - low) * uniform(); }
    int below(int limit) {  // 0 to limit - 1
        return static_cast<int>(saturate::below(mix(key_, ++count_), limit));
    }

  private:
    std::uint64_t key_;
    std::uint64_t count_ = 0;
};

// torchvision's rule, including its fallback for images where no attempt fits.
Region random_part(const ImageTransform& transform, ImageSize size, DrawRandom& random) {
    double area = static_cast<double>(size.width) * size.height;
    double low = std::log(transform.aspect[0]), high = std::log(transform.aspect[1]);
    for (int attempt = 0; attempt < 10; ++attempt) {
        double part = area * random.between(transform.area[0], transform.area[1]);
        double shape = std::exp(random.between(low, high));
        int width = static_cast<int>(std::lround(std::sqrt(part * shape)));
        int height = static_cast<int>(std::lround(std::sqrt(part / shape)));
        if (width > 0 && height > 0 && width <= size.width && height <= size.height)
            return {random.below(size.width - width + 1), random.below(size.height - height + 1),
                    width, height};
    }
    double shape = static_cast<double>(size.width) / size.height;
    int width = size.width, height = size.height;
    if (shape < transform.aspect[0])
        height = static_cast<int>(std::lround(width / transform.aspect[0]));
    else if (shape > transform.aspect[1])
        width = static_cast<int>(std::lround(height * transform.aspect[1]));
    width = std::clamp(width, 1, size.width);
    height = std::clamp(height, 1, size.height);
    return {(size.width - width) / 2, (size.height - height) / 2, width, height};
}

// One side of a crop without resizing: which pixels, and where they go.
void crop_side(int size, int target, int pad, double where, ResizeAxis& axis, int& place) {
    int spare = size + 2 * pad - target;  // negative: needs more padding
    int start =
        spare >= 0 ? std::min(spare, static_cast<int>(where * (spare + 1))) : -((-spare + 1) / 2);
    start -= pad;  // in image coordinates
    int first = std::max(0, start), last = std::min(size, start + target);
    if (last <= first) {  // only padding: include one pixel of the image, which is not seen
        first = std::clamp(first, 0, size - 1);
        last = first + 1;
    }
    int count = last - first;
    place = std::clamp(first - start, 0, target - count);
    axis = {first, count, count, 0, count, false};
}

// The middle of the spare pixels, rounded to even as torchvision does.
double middle(int size, int target, int pad) {
    int spare = size + 2 * pad - target;
    if (spare <= 0) return 0;
    return (std::nearbyint(spare / 2.0) + 0.5) / (spare + 1);
}

// Resizes first, then crops: the middle or a random place.
void plan_resized_crop(const ImageTransform& transform, ImageSize size, ImageSize resized,
                       DrawRandom& random, ImagePlan& plan) {
    auto side = [&](int length, int full, int target) {
        int first = transform.crop_anywhere
                        ? random.below(full - target + 1)
                        : static_cast<int>(std::nearbyint((full - target) / 2.0));
        return ResizeAxis{0, length, full, first, target, false};
    };
    plan.across = side(size.width, resized.width, transform.width);
    plan.down = side(size.height, resized.height, transform.height);
}

ImageSize with_shorter_side(int resize_to, ImageSize size) {
    int shorter = std::min(size.width, size.height);
    auto resized = [&](int side) {
        return side == shorter
                   ? resize_to
                   : static_cast<int>(static_cast<std::int64_t>(resize_to) * side / shorter);
    };
    return {resized(size.width), resized(size.height)};
}

void plan_jitter(const ColourJitter& jitter, DrawRandom& random, ImagePlan& plan) {
    plan.has_jitter = jitter.any();
    if (!plan.has_jitter) return;
    plan.order = {ColourStep::brightness, ColourStep::contrast, ColourStep::saturation,
                  ColourStep::hue};
    for (int i = 3; i > 0; --i) std::swap(plan.order[i], plan.order[random.below(i + 1)]);
    auto factor = [&](double spread) {
        return random.between(std::max(0.0, 1 - spread), 1 + spread);
    };
    plan.brightness = factor(jitter.brightness);
    plan.contrast = factor(jitter.contrast);
    plan.saturation = factor(jitter.saturation);
    plan.hue = random.between(-jitter.hue, jitter.hue);
}

}  // namespace

ImagePlan plan_image(const ImageTransform& transform, ImageSize size, const SampleDraw& draw) {
    DrawRandom random(draw);
    ImagePlan plan;
    int width = transform.width, height = transform.height;
    plan.place = {0, 0, width, height};
    switch (transform.fit) {
        case Fit::stretch:
            plan.across = {0, size.width, width, 0, width, false};
            plan.down = {0, size.height, height, 0, height, false};
            break;
        case Fit::shorter_side:
            plan_resized_crop(transform, size, with_shorter_side(transform.resize_to, size), random,
                              plan);
            break;
        case Fit::resized_sides:
            plan_resized_crop(transform, size,
                              {transform.resize_sides[0], transform.resize_sides[1]}, random, plan);
            break;
        case Fit::as_is:
            if (size != ImageSize{width, height})
                throw BadImage(fmt::format(
                    "is {}x{}, the others are {}x{}: they need a size to be resized or cropped to",
                    size.width, size.height, width, height));
            plan.across = {0, width, width, 0, width, false};
            plan.down = {0, height, height, 0, height, false};
            break;
        case Fit::random_resized_crop: {
            Region part = random_part(transform, size, random);
            plan.across = {part.x, part.width, width, 0, width, false};
            plan.down = {part.y, part.height, height, 0, height, false};
            break;
        }
        case Fit::random_crop:
        case Fit::centre_crop: {
            bool anywhere = transform.fit == Fit::random_crop;
            double x = anywhere ? random.uniform() : middle(size.width, width, transform.pad);
            double y = anywhere ? random.uniform() : middle(size.height, height, transform.pad);
            crop_side(size.width, width, transform.pad, x, plan.across, plan.place.x);
            crop_side(size.height, height, transform.pad, y, plan.down, plan.place.y);
            plan.place.width = plan.across.count;
            plan.place.height = plan.down.count;
            break;
        }
    }
    if (random.uniform() < transform.flip_horizontal) {
        plan.across.mirrored = true;
        plan.place.x = width - plan.place.x - plan.place.width;
    }
    if (random.uniform() < transform.flip_vertical) {
        plan.down.mirrored = true;
        plan.place.y = height - plan.place.y - plan.place.height;
    }
    plan_jitter(transform.jitter, random, plan);
    return plan;
}

FieldSpec ImageTransform::field(std::string name) const {
    return {std::move(name), element, {decode.channels, height, width}, channels_last};
}

void ImageTransform::check() const {
    auto fail = [](std::string found, std::string expected) {
        throw UserError({.where = {}, .found = std::move(found), .expected = std::move(expected)});
    };
    if (width < 1 || height < 1 || width > kImageSideMax || height > kImageSideMax)
        fail(fmt::format("images of {}x{} were requested", width, height),
             fmt::format("1 to {} on each side", kImageSideMax));
    if (decode.channels != 1 && decode.channels != 3)
        fail(fmt::format("images with {} channels were requested", decode.channels),
             "1 (grey) or 3 (RGB)");
    if (fit == Fit::shorter_side && (resize_to < width || resize_to < height))
        fail(fmt::format("the shorter side is resized to {}, then {}x{} is cut out", resize_to,
                         width, height),
             "a shorter side no smaller than the crop");
    if (fit == Fit::resized_sides && (resize_sides[0] < width || resize_sides[1] < height))
        fail(fmt::format("images are resized to {}x{}, then {}x{} is cut out", resize_sides[0],
                         resize_sides[1], width, height),
             "a size no smaller than the crop");
    if (!(area[0] > 0 && area[0] <= area[1] && area[1] <= 1))
        fail(fmt::format("random crops of {} to {} of the area", area[0], area[1]),
             "0 < low <= high <= 1");
    if (!(aspect[0] > 0 && aspect[0] <= aspect[1]))
        fail(fmt::format("random crops with shapes of {} to {}", aspect[0], aspect[1]),
             "0 < low <= high");
    if (pad < 0 || pad > kImageSideMax) fail(fmt::format("a padding of {}", pad), "0 or more");
    std::size_t channels = static_cast<std::size_t>(decode.channels);
    if ((!mean.empty() && mean.size() != channels) ||
        (!deviation.empty() && deviation.size() != channels))
        fail(fmt::format("{} means and {} deviations for {} channels", mean.size(),
                         deviation.size(), channels),
             "one of each per channel, or none");
    if (std::ranges::any_of(deviation, [](float value) { return !(value > 0); }))
        fail("a deviation that is not positive", "more than 0");
    if (element == Element::int64) fail("images as int64", "float32, bfloat16 or uint8");
    if (element == Element::uint8 && (!mean.empty() || !deviation.empty()))
        fail("uint8 images cannot be normalised", "float32 or bfloat16, or no mean and deviation");
    if (jitter.hue < 0 || jitter.hue > 0.5)
        fail(fmt::format("a hue jitter of {}", jitter.hue), "0 to 0.5");
    if (jitter.hue > 0 && decode.channels == 1)
        fail("hue jitter of grey images", "no hue jitter, or RGB");
}

}  // namespace saturate
