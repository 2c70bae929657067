// SPDX-License-Identifier: Apache-2.0
#include "pipeline/image_decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "pipeline/decode_jpeg.h"
#include "pipeline/decode_png.h"
#include "pipeline/decode_webp.h"

namespace saturate {

void check_image_size(std::int64_t width, std::int64_t height) {
    if (width <= 0 || height <= 0)
        throw BadImage(fmt::format("an image of {}x{} pixels", width, height));
    if (width > kImageSideMax || height > kImageSideMax || width * height > kImagePixelsMax)
        throw BadImage(fmt::format("{}x{} pixels, more than the limit of {} million", width, height,
                                   kImagePixelsMax / 1'000'000));
}

namespace {

enum class ImageFormat { none, jpeg, png, webp };

ImageFormat sniff(Bytes file) {
    if (file.empty()) throw BadImage("the file is empty");
    auto starts = [&](const char* text, std::size_t length, std::size_t at = 0) {
        return file.size() >= at + length && std::memcmp(file.data() + at, text, length) == 0;
    };
    if (starts("\xFF\xD8\xFF", 3)) return ImageFormat::jpeg;
    if (starts("\x89PNG\r\n\x1A\n", 8)) return ImageFormat::png;
    if (starts("RIFF", 4) && starts("WEBP", 4, 8)) return ImageFormat::webp;
    throw BadImage("not a JPEG, PNG or WebP file");
}

// EXIF orientations as three operations, applied to the stored image in this order.
struct Turn {
    bool transpose = false;  // rows become columns
    bool mirror = false;     // swap left and right
    bool upend = false;      // swap top and bottom
};

constexpr Turn kTurns[9] = {{},
                            {false, false, false},
                            {false, true, false},
                            {false, true, true},
                            {false, false, true},
                            {true, false, false},
                            {true, true, false},
                            {true, true, true},
                            {true, false, true}};

// Returns the region of the stored image that becomes `wanted` in the upright image.
Region stored_region(const Region& wanted, ImageSize upright, Turn turn) {
    Region region = wanted;
    if (turn.mirror) region.x = upright.width - wanted.x - wanted.width;
    if (turn.upend) region.y = upright.height - wanted.y - wanted.height;
    if (turn.transpose) {
        std::swap(region.x, region.y);
        std::swap(region.width, region.height);
    }
    return region;
}

// Writes the pixels upright into `memory` and transforms the wanted region along with them.
void apply(Turn turn, Decoded& decoded, Buffer<std::uint8_t>& memory) {
    ImageView from = decoded.view;
    ImageSize size = from.size;
    if (turn.transpose) {
        std::swap(size.width, size.height);
        std::swap(decoded.x, decoded.y);
        std::swap(decoded.width, decoded.height);
    }
    std::size_t n = static_cast<std::size_t>(from.channels), stride = n * size.width;
    std::uint8_t* to = memory.get(stride * size.height);
    for (int y = 0; y < size.height; ++y) {
        int v = turn.upend ? size.height - 1 - y : y;
        for (int x = 0; x < size.width; ++x) {
            int u = turn.mirror ? size.width - 1 - x : x;
            const std::uint8_t* pixel = turn.transpose ? from.row(u) + n * v : from.row(v) + n * u;
            for (std::size_t c = 0; c < n; ++c) to[stride * y + n * x + c] = pixel[c];
        }
    }
    if (turn.mirror) decoded.x = size.width - decoded.x - decoded.width;
    if (turn.upend) decoded.y = size.height - decoded.y - decoded.height;
    decoded.view = {to, size, from.channels, stride};
}

// The largest reduction whose result is at least as large as the target.
int reduction(const Region& wanted, ImageSize target) {
    for (int reduce : {8, 4, 2}) {
        if (wanted.width >= target.width * reduce && wanted.height >= target.height * reduce)
            return reduce;
    }
    return 1;
}

}  // namespace

struct ImageDecoder::Impl {
    DecodeSettings settings;
    JpegDecoder jpeg;
    PngDecoder png;
    WebpDecoder webp;
    ImageFormat format = ImageFormat::none;
    ImageSize upright;
    Turn turn;
    bool turned = false;
    Decoded decoded;
    Buffer<std::uint8_t> turned_pixels;
};

ImageDecoder::ImageDecoder(DecodeSettings settings) : impl_(std::make_unique<Impl>()) {
    SATURATE_CHECK(settings.channels == 1 || settings.channels == 3, "images are grey or RGB");
    impl_->settings = settings;
}
ImageDecoder::~ImageDecoder() = default;

ImageSize ImageDecoder::open(Bytes file) {
    Impl& my = *impl_;
    my.format = ImageFormat::none;
    my.turned = false;
    ImageFormat format = sniff(file);
    if (format == ImageFormat::png) {
        my.upright = my.png.open(file);
    } else if (format == ImageFormat::webp) {
        my.upright = my.webp.open(file);
    } else {
        JpegHeader header = my.jpeg.open(file);
        check_image_size(header.size.width, header.size.height);
        my.upright = header.size;
        my.turned = my.settings.exif_orientation && header.orientation != 1;
        my.turn = kTurns[my.turned ? header.orientation : 1];
        if (my.turn.transpose) std::swap(my.upright.width, my.upright.height);
    }
    my.format = format;
    return my.upright;
}

const Decoded& ImageDecoder::decode(const Region& wanted, ImageSize target) {
    Impl& my = *impl_;
    SATURATE_CHECK(wanted.x >= 0 && wanted.y >= 0 && wanted.width > 0 && wanted.height > 0 &&
                       wanted.width <= my.upright.width - wanted.x &&
                       wanted.height <= my.upright.height - wanted.y,
                   "the wanted region lies within the image that was opened");
    if (my.format == ImageFormat::jpeg) {
        int reduce = my.settings.jpeg == JpegDecode::scaled ? reduction(wanted, target) : 1;
        my.decoded = my.jpeg.decode({.wanted = stored_region(wanted, my.upright, my.turn),
                                     .channels = my.settings.channels,
                                     .reduce = reduce,
                                     .whole = my.settings.jpeg == JpegDecode::full});
        if (my.turned) apply(my.turn, my.decoded, my.turned_pixels);
        return my.decoded;
    }
    SATURATE_CHECK(my.format != ImageFormat::none, "open() succeeded before decode()");
    my.decoded.view = my.format == ImageFormat::png ? my.png.decode(my.settings.channels)
                                                    : my.webp.decode(my.settings.channels);
    my.decoded.x = wanted.x;
    my.decoded.y = wanted.y;
    my.decoded.width = wanted.width;
    my.decoded.height = wanted.height;
    return my.decoded;
}

}  // namespace saturate
