// SPDX-License-Identifier: Apache-2.0
#include "pipeline/resize.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace saturate {

namespace {

double support_of(Interpolation interpolation) {
    return interpolation == Interpolation::bilinear ? 1.0 : 2.0;
}

// The filters, which antialiasing stretches: a triangle, and the cubic with a = -0.5 (the choice of
// Pillow and torchvision for antialiasing).
double filter(Interpolation interpolation, double x) {
    x = std::abs(x);
    if (interpolation == Interpolation::bilinear) return x < 1 ? 1 - x : 0;
    constexpr double a = -0.5;
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
    return 0;
}

}  // namespace

ResizeAxis::Range ResizeAxis::needs(Interpolation interpolation) const {
    double scale = static_cast<double>(length) / full;
    double support = support_of(interpolation) * std::max(scale, 1.0);
    double low = scale * (first + 0.5) - support, high = scale * (first + count - 0.5) + support;
    return {start + std::max(0, static_cast<int>(std::floor(low))),
            start + std::min(length, static_cast<int>(std::ceil(high)))};
}

void ResizeTaps::compute(const ResizeAxis& axis, Interpolation interpolation, double offset,
                         double ratio, int size) {
    double scale = axis.length * ratio / axis.full;  // decoded pixels per target pixel
    double stretch = std::max(scale, 1.0);
    double support = support_of(interpolation) * stretch;
    double begin = offset + axis.start * ratio;
    // Ignores pixels beyond the resized region, as if it had been cut out before.
    int low = std::max(0, static_cast<int>(std::floor(begin + 1e-6)));
    int high = std::min(size, static_cast<int>(std::ceil(begin + axis.length * ratio - 1e-6)));
    taps = 1;
    std::vector<int>& at = first;
    at.resize(static_cast<std::size_t>(axis.count));
    auto range = [&](int i) {
        double centre = begin + scale * (axis.first + i + 0.5);
        int from = std::max(low, static_cast<int>(std::floor(centre - support + 0.5)));
        int to = std::min(high, static_cast<int>(std::floor(centre + support + 0.5)));
        if (to <= from) {  // a sliver at the edge: use the nearest pixel
            from = std::clamp(static_cast<int>(std::floor(centre)), low, high - 1);
            to = from + 1;
        }
        return std::pair(from, to);
    };
    for (int i = 0; i < axis.count; ++i) {
        auto [from, to] = range(i);
        taps = std::max(taps, to - from);
    }
    weights.assign(static_cast<std::size_t>(axis.count) * taps, 0.0f);
    for (int i = 0; i < axis.count; ++i) {
        auto [from, to] = range(i);
        double centre = begin + scale * (axis.first + i + 0.5);
        double sum = 0;
        for (int k = from; k < to; ++k) sum += filter(interpolation, (k - centre + 0.5) / stretch);
        int shown = axis.mirrored ? axis.count - 1 - i : i;
        // Keeps all taps within the pixels: at the far edge the unused taps come first, not last.
        int base = std::max(0, std::min(from, size - taps));
        float* out = weights.data() + static_cast<std::size_t>(shown) * taps;
        for (int k = from; k < to; ++k)
            out[k - base] =
                sum == 0
                    ? (k == from ? 1.0f : 0.0f)
                    : static_cast<float>(filter(interpolation, (k - centre + 0.5) / stretch) / sum);
        at[static_cast<std::size_t>(shown)] = base;
    }
}

namespace {

// Arranges the horizontal taps for the kernels. `left` is the first column of the mixed row.
void lay_out(const ResizeTaps& taps, int count, int channels, int left, AcrossTable& table) {
    table.channels = channels;
    table.taps = taps.taps;
    table.width = Resampler::padded_width(count);
    std::size_t lanes = channels == 3 ? 32 : 8;
    table.first.assign(static_cast<std::size_t>(table.width), 0);
    table.weights.assign(static_cast<std::size_t>(table.width) / 8 * taps.taps * lanes, 0.0f);
    table.copies = taps.taps == 1;
    for (int x = 0; x < count; ++x) {
        std::size_t i = static_cast<std::size_t>(x);
        table.first[i] = (taps.first[i] - left) * channels;
        if (taps.first[i] != taps.first[0] + x) table.copies = false;
        for (int k = 0; k < taps.taps; ++k) {
            float weight = taps.weights[i * taps.taps + k];
            float* block = table.weights.data() + (i / 8 * taps.taps + k) * lanes;
            if (channels == 1) {
                block[x % 8] = weight;
            } else {
                std::fill_n(block + x % 4 * 8 + x % 8 / 4 * 4, 4, weight);
            }
        }
    }
}

}  // namespace

void Resampler::prepare(const Decoded& decoded, const Region& wanted, const ResizeAxis& across,
                        const ResizeAxis& down, Interpolation interpolation) {
    view_ = decoded.view;
    clamp_ = interpolation == Interpolation::bicubic;
    double x_scale = decoded.width / wanted.width, y_scale = decoded.height / wanted.height;
    Key key{across,
            down,
            decoded.x - wanted.x * x_scale,
            decoded.y - wanted.y * y_scale,
            x_scale,
            y_scale,
            view_.size,
            view_.channels,
            interpolation};
    if (!(key == key_)) {
        key_ = key;
        across_.compute(across, interpolation, key.x, x_scale, view_.size.width);
        down_.compute(down, interpolation, key.y, y_scale, view_.size.height);
        left_ = view_.size.width;
        int right = 0;
        for (int first : across_.first) {
            left_ = std::min(left_, first);
            right = std::max(right, std::min(first + across_.taps, view_.size.width));
        }
        columns_ = right - left_;
        lay_out(across_, across.count, view_.channels, left_, table_);
    }
    // The kernels may read past the columns, for taps of weight 0 and padding
    // lanes: fill with zeros.
    std::size_t used = static_cast<std::size_t>(columns_) * view_.channels;
    std::size_t spare = static_cast<std::size_t>(across_.taps + 8) * view_.channels + 8;
    float* row = mixed_.get(used + spare);
    std::fill_n(row + used, spare, 0.0f);
}

void Resampler::row(int y, const ChannelScale& scale, float* const* out) {
    const ResizeKernels& kernels = resize_kernels();
    std::size_t count = static_cast<std::size_t>(columns_) * view_.channels;
    float* mixed = mixed_.get(count);
    int first = down_.first[static_cast<std::size_t>(y)];
    int taps = std::min(down_.taps, view_.size.height - first);
    kernels.mix_rows(view_.row(first) + static_cast<std::size_t>(left_) * view_.channels,
                     view_.stride, down_.weights.data() + static_cast<std::size_t>(y) * down_.taps,
                     taps, count, mixed);
    (view_.channels == 3 ? kernels.across_rgb : kernels.across_grey)(mixed, table_, scale, out);
    if (!clamp_) return;
    for (int c = 0; c < view_.channels; ++c) {
        float low = scale.bias[c], high = 255 * scale.scale[c] + scale.bias[c];
        if (low > high) std::swap(low, high);
        for (int x = 0; x < key_.across.count; ++x) out[c][x] = std::clamp(out[c][x], low, high);
    }
}

}  // namespace saturate
