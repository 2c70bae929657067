// SPDX-License-Identifier: Apache-2.0
#include "pipeline/decode_jpeg.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
// jpeglib.h needs FILE and size_t before it.
#include <jpeglib.h>
// and jerror.h the names of jpeglib.h.
#include <jerror.h>

namespace saturate {

namespace {

// libjpeg reports errors through a callback that must not return, so it uses longjmp. The jump
// crosses only C frames of libjpeg and our plain loops: no object with a destructor lives between
// setjmp and longjmp.
struct DecodeErrors {
    jpeg_error_mgr base;
    std::jmp_buf jump;
    char text[JMSG_LENGTH_MAX];
};

DecodeErrors& errors_of(j_common_ptr common) {
    return *reinterpret_cast<DecodeErrors*>(common->err);
}

[[noreturn]] void on_error(j_common_ptr common) {
    DecodeErrors& errors = errors_of(common);
    (*common->err->format_message)(common, errors.text);
    std::longjmp(errors.jump, 1);
}

// Warnings also arrive here. Warnings that mean lost pixels become errors: otherwise training would
// use the grey that libjpeg fills in, and nobody would notice. Odd headers and
// stray bytes are accepted.
void on_message(j_common_ptr common, int level) {
    if (level >= 0) return;
    switch (common->err->msg_code) {
        case JWRN_ARITH_BAD_CODE:
        case JWRN_BOGUS_PROGRESSION:
        case JWRN_HIT_MARKER:
        case JWRN_HUFF_BAD_CODE:
        case JWRN_JPEG_EOF:
        case JWRN_MUST_RESYNC:
        case JWRN_NOT_SEQUENTIAL:
            on_error(common);
        default:
            break;
    }
}

void ignore_message(j_common_ptr) {}

// A data source with the whole file in memory: at its end there is no more data.
void source_nothing(j_decompress_ptr) {}
boolean source_fill(j_decompress_ptr context) {
    ERREXIT(context, JERR_INPUT_EOF);
    return FALSE;
}
void source_skip(j_decompress_ptr context, long count) {
    if (count <= 0) return;
    if (static_cast<std::size_t>(count) > context->src->bytes_in_buffer)
        ERREXIT(context, JERR_INPUT_EOF);
    context->src->next_input_byte += count;
    context->src->bytes_in_buffer -= static_cast<std::size_t>(count);
}

// A progressive file may have thousands of tiny scans, and each costs a pass over the image.
constexpr int kScansMax = 200;
void on_progress(j_common_ptr common) {
    if (!common->is_decompressor) return;
    if (reinterpret_cast<j_decompress_ptr>(common)->input_scan_number > kScansMax) {
        std::snprintf(errors_of(common).text, JMSG_LENGTH_MAX, "more than %d scans", kScansMax);
        std::longjmp(errors_of(common).jump, 1);
    }
}

constexpr int kRowsAtOnce = 8;

// Converts ink to light. Files with an Adobe marker store inverted ink.
void cmyk_row(const std::uint8_t* in, std::uint8_t* out, int width, int channels, bool inverted) {
    for (int x = 0; x < width; ++x, in += 4, out += channels) {
        int flip = inverted ? 0 : 255;
        int k = in[3] ^ flip;
        int light[3];
        for (int c = 0; c < 3; ++c) light[c] = ((in[c] ^ flip) * k + 127) / 255;
        if (channels == 3) {
            for (int c = 0; c < 3; ++c) out[c] = static_cast<std::uint8_t>(light[c]);
        } else {
            out[0] = static_cast<std::uint8_t>(
                (light[0] * 19595 + light[1] * 38470 + light[2] * 7471 + 32768) >> 16);
        }
    }
}

}  // namespace

struct JpegDecoder::Impl {
    jpeg_decompress_struct context{};
    DecodeErrors errors{};
    jpeg_source_mgr source{};
    jpeg_progress_mgr progress{};
    Buffer<std::uint8_t> pixels;
    Buffer<std::uint8_t> ink;  // CMYK rows before they become RGB

    Impl() {
        context.err = jpeg_std_error(&errors.base);
        errors.base.error_exit = on_error;
        errors.base.emit_message = on_message;
        errors.base.output_message = ignore_message;
        if (setjmp(errors.jump)) throw BadImage(errors.text);
        jpeg_create_decompress(&context);
        source.init_source = source_nothing;
        source.fill_input_buffer = source_fill;
        source.skip_input_data = source_skip;
        source.resync_to_restart = jpeg_resync_to_restart;
        source.term_source = source_nothing;
        progress.progress_monitor = on_progress;
        context.src = &source;
        context.progress = &progress;
    }
    ~Impl() { jpeg_destroy_decompress(&context); }

    [[noreturn]] void fail() {
        jpeg_abort_decompress(&context);
        throw BadImage(errors.text);
    }

    void start(int channels, int reduce);
    bool read_rows(int first, int last, int left, int columns, int channels);
};

JpegDecoder::JpegDecoder() : impl_(std::make_unique<Impl>()) {}
JpegDecoder::~JpegDecoder() = default;

JpegHeader JpegDecoder::open(Bytes file) {
    Impl& my = *impl_;
    jpeg_abort_decompress(&my.context);  // drops an image that was opened but not decoded
    JpegHeader header;
    if (setjmp(my.errors.jump)) my.fail();
    my.source.next_input_byte = file.data();
    my.source.bytes_in_buffer = file.size();
    my.errors.base.num_warnings = 0;
    jpeg_save_markers(&my.context, JPEG_APP0 + 1, 0xFFFF);
    jpeg_read_header(&my.context, TRUE);
    header.size = {static_cast<int>(my.context.image_width),
                   static_cast<int>(my.context.image_height)};
    for (jpeg_saved_marker_ptr marker = my.context.marker_list; marker; marker = marker->next) {
        int orientation = exif_orientation({marker->data, marker->data_length});
        if (orientation != 1) header.orientation = orientation;
    }
    return header;
}

// Sets libjpeg's output format and starts; errors jump to the caller's setjmp.
void JpegDecoder::Impl::start(int channels, int reduce) {
    context.scale_num = 1;
    context.scale_denom = static_cast<unsigned>(reduce);
    context.dct_method = JDCT_ISLOW;
    context.do_fancy_upsampling = TRUE;
    bool has_ink = context.jpeg_color_space == JCS_CMYK || context.jpeg_color_space == JCS_YCCK;
    context.out_color_space = has_ink ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&context);
}

// Decodes rows [first, last) and `columns` pixels from `left` on densely into `pixels`.
bool JpegDecoder::Impl::read_rows(int first, int last, int left, int columns, int channels) {
    std::size_t stride = static_cast<std::size_t>(columns) * channels;
    bool has_ink = context.out_color_space == JCS_CMYK;
    JDIMENSION x = static_cast<JDIMENSION>(left), width = static_cast<JDIMENSION>(columns);
    if (width < context.output_width) jpeg_crop_scanline(&context, &x, &width);
    if (x != static_cast<JDIMENSION>(left) || width != static_cast<JDIMENSION>(columns))
        return false;
    std::uint8_t* out = pixels.get(stride * (last - first));
    std::uint8_t* inks =
        has_ink ? ink.get(static_cast<std::size_t>(columns) * 4 * kRowsAtOnce) : nullptr;
    if (first > 0) jpeg_skip_scanlines(&context, static_cast<JDIMENSION>(first));
    int y = first;
    while (y < last) {
        JSAMPROW rows[kRowsAtOnce];
        int want = std::min(kRowsAtOnce, last - y);
        for (int i = 0; i < want; ++i)
            rows[i] = has_ink ? inks + static_cast<std::size_t>(columns) * 4 * i
                              : out + stride * (y - first + i);
        int got =
            static_cast<int>(jpeg_read_scanlines(&context, rows, static_cast<JDIMENSION>(want)));
        for (int i = 0; has_ink && i < got; ++i)
            cmyk_row(rows[i], out + stride * (y - first + i), columns, channels,
                     context.saw_Adobe_marker != 0);
        y += got;
    }
    return true;
}

namespace {

// The range to decode along one side of the scaled image.
struct Extent {
    int first = 0;
    int last = 0;
};

// The scaled pixels for [start, start + length) of the full size, plus `margin` on each side:
// chroma at the edge of the decoded part is interpolated with one neighbour less.
Extent extent(int start, int length, int reduce, int margin, int limit) {
    return {std::max(0, start / reduce - margin),
            std::min(limit, (start + length + reduce - 1) / reduce + margin)};
}

}  // namespace

Decoded JpegDecoder::decode(const JpegPart& part) {
    const auto& [wanted, channels, reduce, whole] = part;
    Impl& my = *impl_;
    if (setjmp(my.errors.jump)) my.fail();
    my.start(channels, reduce);
    const jpeg_decompress_struct& c = my.context;
    int width = static_cast<int>(c.output_width), height = static_cast<int>(c.output_height);
    Extent across{0, width}, down{0, height};
    if (!whole) {
        across = extent(wanted.x, wanted.width, reduce, 2, width);
        down = extent(wanted.y, wanted.height, reduce, 0, height);
        // libjpeg crops only at whole blocks (single-component blocks for grey, MCUs otherwise).
        int block = c.comps_in_scan == 1 && c.num_components == 1
                        ? c.min_DCT_scaled_size
                        : c.max_h_samp_factor * c.min_DCT_scaled_size;
        across.first -= across.first % block;
    }
    // Reads only as many rows as needed and ignores the rest of the file.
    if (!my.read_rows(down.first, down.last, across.first, across.last - across.first, channels)) {
        std::strcpy(my.errors.text, "cannot be cropped");
        my.fail();
    }
    jpeg_abort_decompress(&my.context);
    int columns = across.last - across.first, rows = down.last - down.first;
    std::size_t stride = static_cast<std::size_t>(columns) * channels;
    return {.view = {my.pixels.get(stride * rows), {columns, rows}, channels, stride},
            .x = static_cast<double>(wanted.x) / reduce - across.first,
            .y = static_cast<double>(wanted.y) / reduce - down.first,
            .width = static_cast<double>(wanted.width) / reduce,
            .height = static_cast<double>(wanted.height) / reduce};
}

}  // namespace saturate
