// SPDX-License-Identifier: Apache-2.0
// Resizes with antialiasing, straight from 8-bit pixels to floats: one pass, row by row, first
// vertically, then horizontally, without an intermediate image. Computes what torchvision's
// v2.Resize with antialias=True computes on float images. One Resampler per worker thread; it keeps
// its tables.
#pragma once

#include <vector>

#include "pipeline/image_decode.h"
#include "pipeline/resize_kernels.h"

namespace saturate {

enum class Interpolation { bilinear, bicubic };

// One side of a resize: source pixels [start, start + length) become `full` target pixels, of which
// `count` from `first` on are wanted. If mirrored, they come out in reverse order.
struct ResizeAxis {
    int start = 0;
    int length = 0;
    int full = 0;
    int first = 0;
    int count = 0;
    bool mirrored = false;
    bool operator==(const ResizeAxis&) const = default;

    // The source pixels that the wanted target pixels depend on.
    struct Range {
        int first = 0;
        int last = 0;
    };
    [[nodiscard]] Range needs(Interpolation interpolation) const;
    // Where a position in the source, in pixels from its edge, ends up among the wanted pixels.
    [[nodiscard]] double moved(double place) const {
        double at = (place - start) * full / length - first;
        return mirrored ? count - at : at;
    }
};

// The source pixels and weights that each target pixel mixes. All target pixels have the same
// number of taps; unneeded taps have weight 0.
struct ResizeTaps {
    std::vector<int> first;
    std::vector<float> weights;  // `taps` for each pixel
    int taps = 0;

    // `offset` and `scale` convert a source coordinate into one of the `size` decoded pixels:
    // decoded = offset + source * scale.
    void compute(const ResizeAxis& axis, Interpolation interpolation, double offset, double scale,
                 int size);
};

class Resampler {
  public:
    // `wanted` is the region that the decoder was asked for with these axes. The decoded pixels
    // must stay valid until the last row.
    void prepare(const Decoded& decoded, const Region& wanted, const ResizeAxis& across,
                 const ResizeAxis& down, Interpolation interpolation);
    // Computes row `y` of the target: per channel `count` values scale * pixel + bias, at
    // out[channel]. Up to padded_width(count) values may be written there.
    void row(int y, const ChannelScale& scale, float* const* out);

    [[nodiscard]] static int padded_width(int count) { return (count + 7) & ~7; }

  private:
    struct Key {  // what the tables were computed for
        ResizeAxis across, down;
        double x = 0, y = 0, x_scale = 0, y_scale = 0;
        ImageSize size;
        int channels = 0;
        Interpolation interpolation = Interpolation::bilinear;
        bool operator==(const Key&) const = default;
    };
    Key key_;
    ImageView view_;
    ResizeTaps across_, down_;
    AcrossTable table_;
    bool clamp_ = false;  // bicubic overshoots
    int left_ = 0;        // first source column in use
    int columns_ = 0;
    Buffer<float> mixed_;  // a row after the vertical step
};

}  // namespace saturate
