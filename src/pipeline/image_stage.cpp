// SPDX-License-Identifier: Apache-2.0
#include "pipeline/image_stage.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "pipeline/colour.h"

namespace saturate {

namespace {

std::uint16_t to_bfloat16(float value) {  // to nearest, ties to even; pixels are never NaN
    std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

std::uint8_t to_uint8(float value) {
    return static_cast<std::uint8_t>(std::clamp(value, 0.0f, 255.0f) + 0.5f);
}

template <typename T, typename Convert>
void store(const float* const* row, int channels, int width, T* out, std::size_t pixel_step,
           std::size_t channel_step, Convert convert) {
    for (int c = 0; c < channels; ++c) {
        T* to = out + channel_step * static_cast<std::size_t>(c);
        for (int x = 0; x < width; ++x)
            to[pixel_step * static_cast<std::size_t>(x)] = convert(row[c][x]);
    }
}

ChannelScale normalisation(const ImageTransform& transform) {
    ChannelScale scale;
    if (transform.element == Element::uint8) return scale;
    for (int c = 0; c < transform.decode.channels; ++c) {
        std::size_t i = static_cast<std::size_t>(c);
        double mean = transform.mean.empty() ? 0 : transform.mean[i];
        double deviation = transform.deviation.empty() ? 1 : transform.deviation[i];
        scale.scale[c] = static_cast<float>(1 / (255 * deviation));
        scale.bias[c] = static_cast<float>(-mean / deviation);
    }
    return scale;
}

}  // namespace

struct ImageStage::Impl {
    ImageTransform transform;
    ImageDecoder decoder;
    Resampler resampler;
    ChannelScale scale;
    Buffer<float> picture;  // rows, or all planes, if they cannot be written directly

    explicit Impl(const ImageTransform& settings)
        : transform(settings), decoder(settings.decode), scale(normalisation(settings)) {}

    void emit(const Decoded& decoded, const Region& wanted, const ImagePlan& plan, std::byte* place,
              SampleCost& cost);
    void write_rows(std::byte* place);
    void write_picture(const ImagePlan& plan, std::byte* place);
    void store_row(const float* const* row, int y, std::byte* place) const;
};

ImageStage::ImageStage(const ImageTransform& transform) : impl_(std::make_unique<Impl>(transform)) {
    transform.check();
}
ImageStage::~ImageStage() = default;

namespace {

Region needed(const ImagePlan& plan, Interpolation interpolation) {
    ResizeAxis::Range x = plan.across.needs(interpolation), y = plan.down.needs(interpolation);
    return {x.first, y.first, x.last - x.first, y.last - y.first};
}

// Size that `pixels` source pixels have after resizing: decoding more than that is useless.
int resized(const ResizeAxis& axis, int pixels) {
    return static_cast<int>(std::ceil(static_cast<double>(pixels) * axis.full / axis.length));
}

}  // namespace

ImageSize ImageStage::write(Bytes file, const SampleDraw& draw, std::byte* place,
                            SampleCost& cost) {
    Impl& my = *impl_;
    std::int64_t start = now_ns();
    ImageSize size = my.decoder.open(file);
    ImagePlan plan = plan_image(my.transform, size, draw);
    Region wanted = needed(plan, my.transform.interpolation);
    const Decoded& decoded = my.decoder.decode(
        wanted, {resized(plan.across, wanted.width), resized(plan.down, wanted.height)});
    cost.decode_ns += now_ns() - start;
    my.emit(decoded, wanted, plan, place, cost);
    return size;
}

void ImageStage::prepare(Bytes file, std::vector<std::byte>& prepared, SampleCost& cost) {
    Impl& my = *impl_;
    std::int64_t start = now_ns();
    ImageSize size = my.decoder.open(file);
    const ImageView& view = my.decoder.decode({0, 0, size.width, size.height}, size).view;
    std::size_t row = static_cast<std::size_t>(size.width) * view.channels, at = prepared.size();
    prepared.resize(at + sizeof size + row * size.height);
    std::memcpy(prepared.data() + at, &size, sizeof size);
    at += sizeof size;
    for (int y = 0; y < size.height; ++y, at += row)
        std::memcpy(prepared.data() + at, view.row(y), row);
    cost.decode_ns += now_ns() - start;
}

ImageSize ImageStage::write_prepared(std::span<const std::byte>& prepared, const SampleDraw& draw,
                                     std::byte* place, SampleCost& cost) {
    Impl& my = *impl_;
    ImageSize size;
    int channels = my.transform.decode.channels;
    if (prepared.size() < sizeof size) throw BadImage("a cached image is cut off");
    std::memcpy(&size, prepared.data(), sizeof size);
    check_image_size(size.width, size.height);
    std::size_t stride = static_cast<std::size_t>(size.width) * channels;
    if ((prepared.size() - sizeof size) / stride < static_cast<std::size_t>(size.height))
        throw BadImage("a cached image is cut off");
    Region all{0, 0, size.width, size.height};
    const auto* pixels = reinterpret_cast<const std::uint8_t*>(prepared.data() + sizeof size);
    Decoded decoded{{pixels, size, channels, stride},
                    0,
                    0,
                    static_cast<double>(size.width),
                    static_cast<double>(size.height)};
    prepared = prepared.subspan(sizeof size + stride * size.height);
    my.emit(decoded, all, plan_image(my.transform, size, draw), place, cost);
    return size;
}

void ImageStage::Impl::emit(const Decoded& decoded, const Region& wanted, const ImagePlan& plan,
                            std::byte* place, SampleCost& cost) {
    std::int64_t start = now_ns();
    resampler.prepare(decoded, wanted, plan.across, plan.down, transform.interpolation);
    bool whole = plan.place == Region{0, 0, transform.width, transform.height};
    if (whole && !plan.has_jitter)
        write_rows(place);
    else
        write_picture(plan, place);
    cost.transform_ns += now_ns() - start;
}

// Writes row by row into the batch. Float planes are written directly if the width is a multiple of
// the kernels' width; with other widths the overhang would end up in the next sample.
void ImageStage::Impl::write_rows(std::byte* place) {
    int width = transform.width, height = transform.height, channels = transform.decode.channels;
    int padded = Resampler::padded_width(width);
    bool planar = !transform.channels_last || channels == 1;
    bool direct = transform.element == Element::float32 && planar && padded == width;
    float* rows = direct ? nullptr : picture.get(static_cast<std::size_t>(padded) * 3);
    for (int y = 0; y < height; ++y) {
        float* out[3];
        for (int c = 0; c < 3; ++c) {
            std::size_t plane = static_cast<std::size_t>(c % channels) * width * height;
            out[c] = direct ? reinterpret_cast<float*>(place) + plane +
                                  static_cast<std::size_t>(y) * width
                            : rows + static_cast<std::size_t>(padded) * c;
        }
        resampler.row(y, scale, out);
        if (!direct) store_row(out, y, place);
    }
}

// Computes the whole result as planes first: contrast needs all pixels, and padding surrounds them.
void ImageStage::Impl::write_picture(const ImagePlan& plan, std::byte* place) {
    int channels = transform.decode.channels;
    Planes image{{}, channels, transform.width, transform.height, 0};
    image.stride = Resampler::padded_width(transform.width) + 8;
    std::size_t plane = static_cast<std::size_t>(image.stride) * image.height;
    float* memory = picture.get(plane * channels);
    std::fill_n(memory, plane * channels, static_cast<float>(transform.pad_value));
    for (int c = 0; c < channels; ++c) image.channel[c] = memory + plane * c;
    float overhang[3][8];  // saves the pixels that the kernels overwrite past the end of a row
    for (int y = 0; y < plan.place.height; ++y) {
        float* out[3] = {};
        std::size_t at = static_cast<std::size_t>(plan.place.y + y) * image.stride + plan.place.x;
        std::size_t end = static_cast<std::size_t>(plan.place.width);
        for (int c = 0; c < channels; ++c) {
            out[c] = image.channel[c] + at;
            std::memcpy(overhang[c], out[c] + end, sizeof overhang[c]);
        }
        resampler.row(y, ChannelScale{}, out);
        for (int c = 0; c < channels; ++c)
            std::memcpy(out[c] + end, overhang[c], sizeof overhang[c]);
    }
    if (plan.has_jitter) apply_jitter(plan, image);
    for (int y = 0; y < image.height; ++y) {
        float* row[3] = {};
        for (int c = 0; c < channels; ++c) {
            row[c] = image.channel[c] + static_cast<std::size_t>(y) * image.stride;
            for (int x = 0; x < image.width; ++x)
                row[c][x] = row[c][x] * scale.scale[c] + scale.bias[c];
        }
        store_row(row, y, place);
    }
}

void ImageStage::Impl::store_row(const float* const* row, int y, std::byte* place) const {
    std::size_t width = static_cast<std::size_t>(transform.width);
    std::size_t channels = static_cast<std::size_t>(transform.decode.channels);
    std::size_t line = static_cast<std::size_t>(y) * width;
    bool last = transform.channels_last;
    std::size_t start = last ? line * channels : line, pixel_step = last ? channels : 1;
    std::size_t channel_step = last ? 1 : width * static_cast<std::size_t>(transform.height);
    int n = transform.decode.channels, w = transform.width;
    switch (transform.element) {
        case Element::float32:
            store(row, n, w, reinterpret_cast<float*>(place) + start, pixel_step, channel_step,
                  [](float value) { return value; });
            break;
        case Element::bfloat16:
            store(row, n, w, reinterpret_cast<std::uint16_t*>(place) + start, pixel_step,
                  channel_step, to_bfloat16);
            break;
        default:
            store(row, n, w, reinterpret_cast<std::uint8_t*>(place) + start, pixel_step,
                  channel_step, to_uint8);
            break;
    }
}

}  // namespace saturate
