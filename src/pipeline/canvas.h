// SPDX-License-Identifier: Apache-2.0
// Draws the pictures for `data make`: textured scenes and shapes with soft edges. Float pixels from
// 0 to 1, one to three channels. Use each object from one thread only.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "pipeline/image.h"
#include "pipeline/random.h"

namespace saturate {

// Random numbers from a seed, the same on every machine.
class Dice {
  public:
    explicit Dice(std::uint64_t seed) : state_(mix(seed)) {}
    [[nodiscard]] double unit() { return saturate::unit(mix(state_++)); }
    [[nodiscard]] double between(double low, double high) { return low + (high - low) * unit(); }
    [[nodiscard]] int below(int count) { return static_cast<int>(unit() * count); }
    [[nodiscard]] double normal();  // mean 0, deviation 1

  private:
    std::uint64_t state_;
};

using Colour = std::array<double, 3>;

enum class Outline { disc, ring, square, triangle, cross, star, jigsaw };
struct Shape {
    Outline outline = Outline::disc;
    double x = 0, y = 0;
    double radius = 10;
    double turn = 0;  // radians
};

// Distance of a point from the shape's edge, in pixels: negative inside, positive outside.
class Distance {
  public:
    explicit Distance(const Shape& shape);
    [[nodiscard]] double operator()(double x, double y) const;

  private:
    const Shape& shape_;
    double cos_, sin_;
};

class Canvas {
  public:
    Canvas(int width, int height, int channels);

    [[nodiscard]] int width() const { return width_; }
    [[nodiscard]] int height() const { return height_; }
    [[nodiscard]] float& at(int x, int y, int channel) {
        return pixels_[static_cast<std::size_t>((y * width_ + x) * channels_ + channel)];
    }
    void gradient(const Colour& from, const Colour& to, double turn);
    void stripes(double wavelength, double turn, double strength);
    void blobs(double size, double strength, Dice& dice);  // smooth random light and shade
    void noise(double deviation, Dice& dice);
    // Blends `colour` into the shape's area with `opacity`; edges are soft over one pixel.
    void fill(const Shape& shape, const Colour& colour, double opacity);
    void outline(const Shape& shape, const Colour& colour, double thickness, double opacity);
    // Draws something like a photograph: a background, light, several shapes, texture.
    void scene(Dice& dice);

    [[nodiscard]] std::vector<std::uint8_t> bytes() const;

  private:
    int width_, height_, channels_;
    std::vector<float> pixels_;
};

// Halves `pixels` and enlarges them again, both bicubic, to look like an enlarged small picture.
[[nodiscard]] std::vector<std::uint8_t> halve_and_enlarge(const std::vector<std::uint8_t>& pixels,
                                                          ImageSize size, int channels);

}  // namespace saturate
