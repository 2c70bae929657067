// SPDX-License-Identifier: Apache-2.0
#include "pipeline/canvas.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "pipeline/resize.h"

namespace saturate {

namespace {

constexpr double kPi = std::numbers::pi;

double box(double x, double y, double half_width, double half_height) {
    double dx = std::abs(x) - half_width, dy = std::abs(y) - half_height;
    return std::hypot(std::max(dx, 0.0), std::max(dy, 0.0)) + std::min(std::max(dx, dy), 0.0);
}

double regular(double x, double y, int corners, double radius) {
    double wedge = 2 * kPi / corners;
    double angle = std::remainder(std::atan2(y, x), wedge);
    return std::hypot(x, y) * std::cos(angle) - radius * std::cos(kPi / corners);
}

// A square with a knob on its right side and a notch in its top side.
double jigsaw(double x, double y, double radius) {
    double body = box(x, y, 0.75 * radius, 0.75 * radius);
    double knob = std::hypot(x - 0.85 * radius, y) - 0.28 * radius;
    double notch = std::hypot(x, y + 0.7 * radius) - 0.28 * radius;
    return std::max(std::min(body, knob), -notch);
}

}  // namespace

double Dice::normal() {  // Box-Muller
    double radius = std::sqrt(-2 * std::log(1 - unit()));
    return radius * std::cos(2 * kPi * unit());
}

Distance::Distance(const Shape& shape)
    : shape_(shape), cos_(std::cos(shape.turn)), sin_(std::sin(shape.turn)) {}

double Distance::operator()(double x, double y) const {
    double radius = shape_.radius;
    double dx = cos_ * (x - shape_.x) + sin_ * (y - shape_.y);
    double dy = cos_ * (y - shape_.y) - sin_ * (x - shape_.x);
    switch (shape_.outline) {
        case Outline::disc:
            return std::hypot(dx, dy) - radius;
        case Outline::ring:
            return std::abs(std::hypot(dx, dy) - 0.8 * radius) - 0.2 * radius;
        case Outline::square:
            return box(dx, dy, 0.8 * radius, 0.8 * radius);
        case Outline::triangle:
            return regular(dx, dy, 3, radius);
        case Outline::cross:
            return std::min(box(dx, dy, radius, 0.28 * radius), box(dx, dy, 0.28 * radius, radius));
        case Outline::star:
            return std::min(regular(dx, dy, 3, radius), regular(-dx, -dy, 3, radius));
        case Outline::jigsaw:
            return jigsaw(dx, dy, radius);
    }
    return 0;
}

Canvas::Canvas(int width, int height, int channels)
    : width_(width),
      height_(height),
      channels_(channels),
      pixels_(static_cast<std::size_t>(width * height * channels), 0.5f) {}

void Canvas::gradient(const Colour& from, const Colour& to, double turn) {
    double c = std::cos(turn), s = std::sin(turn);
    double reach = (std::abs(c) * width_ + std::abs(s) * height_) / 2;
    for (int y = 0; y < height_; ++y) {
        for (int x = 0; x < width_; ++x) {
            double along = (c * (x - width_ / 2.0) + s * (y - height_ / 2.0)) / (2 * reach) + 0.5;
            for (int k = 0; k < channels_; ++k) {
                auto i = static_cast<std::size_t>(k);
                at(x, y, k) = static_cast<float>(from[i] + (to[i] - from[i]) * along);
            }
        }
    }
}

void Canvas::stripes(double wavelength, double turn, double strength) {
    double c = std::cos(turn) * 2 * kPi / wavelength, s = std::sin(turn) * 2 * kPi / wavelength;
    for (int y = 0; y < height_; ++y) {
        for (int x = 0; x < width_; ++x) {
            auto light = static_cast<float>(strength * std::sin(c * x + s * y));
            for (int k = 0; k < channels_; ++k) at(x, y, k) += light;
        }
    }
}

void Canvas::blobs(double size, double strength, Dice& dice) {
    int columns = static_cast<int>(width_ / size) + 2, rows = static_cast<int>(height_ / size) + 2;
    std::vector<double> grid(static_cast<std::size_t>(columns * rows));
    for (double& value : grid) value = dice.between(-strength, strength);
    auto knot = [&](int x, int y) { return grid[static_cast<std::size_t>(y * columns + x)]; };
    for (int y = 0; y < height_; ++y) {
        for (int x = 0; x < width_; ++x) {
            double gx = x / size, gy = y / size;
            int ix = static_cast<int>(gx), iy = static_cast<int>(gy);
            double fx = gx - ix, fy = gy - iy;
            fx = fx * fx * (3 - 2 * fx);
            fy = fy * fy * (3 - 2 * fy);
            double top = knot(ix, iy) * (1 - fx) + knot(ix + 1, iy) * fx;
            double low = knot(ix, iy + 1) * (1 - fx) + knot(ix + 1, iy + 1) * fx;
            for (int k = 0; k < channels_; ++k)
                at(x, y, k) += static_cast<float>(top * (1 - fy) + low * fy);
        }
    }
}

void Canvas::noise(double deviation, Dice& dice) {
    for (float& pixel : pixels_) pixel += static_cast<float>(deviation * dice.normal());
}

void Canvas::fill(const Shape& shape, const Colour& colour, double opacity) {
    Distance distance(shape);
    int reach = static_cast<int>(shape.radius * 1.5) + 2;
    int left = std::max(0, static_cast<int>(shape.x) - reach);
    int right = std::min(width_, static_cast<int>(shape.x) + reach + 1);
    int top = std::max(0, static_cast<int>(shape.y) - reach);
    int bottom = std::min(height_, static_cast<int>(shape.y) + reach + 1);
    for (int y = top; y < bottom; ++y) {
        for (int x = left; x < right; ++x) {
            double cover = std::clamp(0.5 - distance(x + 0.5, y + 0.5), 0.0, 1.0) * opacity;
            for (int k = 0; k < channels_; ++k) {
                float& pixel = at(x, y, k);
                double wanted = colour[static_cast<std::size_t>(k)];
                pixel = static_cast<float>(pixel + (wanted - pixel) * cover);
            }
        }
    }
}

void Canvas::outline(const Shape& shape, const Colour& colour, double thickness, double opacity) {
    Distance distance(shape);
    int reach = static_cast<int>(shape.radius * 1.5 + thickness) + 2;
    for (int y = std::max(0, static_cast<int>(shape.y) - reach);
         y < std::min(height_, static_cast<int>(shape.y) + reach + 1); ++y) {
        for (int x = std::max(0, static_cast<int>(shape.x) - reach);
             x < std::min(width_, static_cast<int>(shape.x) + reach + 1); ++x) {
            double away = std::abs(distance(x + 0.5, y + 0.5)) - thickness / 2;
            double cover = std::clamp(0.5 - away, 0.0, 1.0) * opacity;
            for (int k = 0; k < channels_; ++k) {
                float& pixel = at(x, y, k);
                double wanted = colour[static_cast<std::size_t>(k)];
                pixel = static_cast<float>(pixel + (wanted - pixel) * cover);
            }
        }
    }
}

void Canvas::scene(Dice& dice) {
    auto colour = [&] {
        double light = dice.between(0.15, 0.85);
        auto tint = [&] { return std::clamp(light + dice.between(-0.25, 0.25), 0.0, 1.0); };
        return Colour{tint(), tint(), tint()};
    };
    gradient(colour(), colour(), dice.between(0, 2 * kPi));
    blobs(dice.between(12, 50), 0.15, dice);
    for (int i = 0; i < 14; ++i) {
        Shape shape{.outline = static_cast<Outline>(dice.below(6)),
                    .x = dice.between(0, width_),
                    .y = dice.between(0, height_),
                    .radius = dice.between(4, 0.3 * height_),
                    .turn = dice.between(0, 2 * kPi)};
        fill(shape, colour(), dice.between(0.4, 1));
        if (dice.unit() < 0.4) outline(shape, colour(), dice.between(1, 3), 0.9);
    }
    stripes(dice.between(4, 20), dice.between(0, kPi), dice.between(0.01, 0.06));
    blobs(dice.between(2.5, 5), 0.05, dice);
}

std::vector<std::uint8_t> Canvas::bytes() const {
    std::vector<std::uint8_t> out(pixels_.size());
    std::ranges::transform(pixels_, out.begin(), [](float pixel) {
        return static_cast<std::uint8_t>(std::clamp(pixel, 0.0f, 1.0f) * 255 + 0.5f);
    });
    return out;
}

namespace {

std::vector<std::uint8_t> resized(const std::vector<std::uint8_t>& pixels, ImageSize from,
                                  ImageSize to, int channels) {
    Decoded decoded{.view = {.pixels = pixels.data(),
                             .size = from,
                             .channels = channels,
                             .stride = static_cast<std::size_t>(from.width * channels)},
                    .width = static_cast<double>(from.width),
                    .height = static_cast<double>(from.height)};
    ResizeAxis across{.length = from.width, .full = to.width, .count = to.width};
    ResizeAxis down{.length = from.height, .full = to.height, .count = to.height};
    Resampler resampler;
    resampler.prepare(decoded, {0, 0, from.width, from.height}, across, down,
                      Interpolation::bicubic);
    auto padded = static_cast<std::size_t>(Resampler::padded_width(to.width));
    std::vector<float> row(padded * static_cast<std::size_t>(channels));
    std::vector<float*> places;
    for (int k = 0; k < channels; ++k)
        places.push_back(row.data() + padded * static_cast<std::size_t>(k));
    std::vector<std::uint8_t> out;
    out.reserve(static_cast<std::size_t>(to.width * to.height * channels));
    ChannelScale as_it_is;
    for (int y = 0; y < to.height; ++y) {
        resampler.row(y, as_it_is, places.data());
        for (int x = 0; x < to.width; ++x) {
            for (int k = 0; k < channels; ++k) {
                float value = places[static_cast<std::size_t>(k)][x];
                out.push_back(static_cast<std::uint8_t>(std::clamp(value, 0.0f, 255.0f) + 0.5f));
            }
        }
    }
    return out;
}

}  // namespace

std::vector<std::uint8_t> halve_and_enlarge(const std::vector<std::uint8_t>& pixels, ImageSize size,
                                            int channels) {
    ImageSize half{.width = size.width / 2, .height = size.height / 2};
    return resized(resized(pixels, size, half, channels), half, size, channels);
}

}  // namespace saturate
