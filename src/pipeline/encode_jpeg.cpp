// SPDX-License-Identifier: Apache-2.0
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
// jpeglib.h needs FILE and size_t before it.
#include <jpeglib.h>

#include "base/error.h"
#include "base/file.h"
#include "pipeline/image_write.h"

namespace saturate {

namespace {

struct EncodeErrors {
    jpeg_error_mgr base;
    std::jmp_buf jump;
    char text[JMSG_LENGTH_MAX];
};

[[noreturn]] void on_error(j_common_ptr common) {
    EncodeErrors& errors = *reinterpret_cast<EncodeErrors*>(common->err);
    (*common->err->format_message)(common, errors.text);
    std::longjmp(errors.jump, 1);
}

// Writes EXIF with the orientation as its only tag: TIFF header, one entry, no further directory.
void write_orientation(jpeg_compress_struct& context, int orientation) {
    JOCTET block[] = {'E',  'x',  'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1,
                      0x01, 0x12, 0,   3,   0, 0, 0,   1,   0, 1,  0, 0, 0, 0, 0, 0};
    block[25] = static_cast<JOCTET>(orientation);
    jpeg_write_marker(&context, JPEG_APP0 + 1, block, sizeof block);
}

// Owns what libjpeg allocates, so that it is freed on every way out of encode_jpeg.
struct Encoder {
    jpeg_compress_struct context{};
    EncodeErrors errors{};
    unsigned char* memory = nullptr;
    unsigned long size = 0;
    ~Encoder() {
        jpeg_destroy_compress(&context);
        std::free(memory);
    }
};

void compress(Encoder& encoder, const ImageView& image, const JpegWriteSettings& settings) {
    jpeg_compress_struct& context = encoder.context;
    context.err = jpeg_std_error(&encoder.errors.base);
    encoder.errors.base.error_exit = on_error;
    if (setjmp(encoder.errors.jump)) throw Bug(__FILE__, __LINE__, encoder.errors.text);
    jpeg_create_compress(&context);
    jpeg_mem_dest(&context, &encoder.memory, &encoder.size);
    context.image_width = static_cast<JDIMENSION>(image.size.width);
    context.image_height = static_cast<JDIMENSION>(image.size.height);
    context.input_components = image.channels;
    context.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&context);
    jpeg_set_quality(&context, settings.quality, TRUE);
    int factor = settings.subsampled && image.channels == 3 ? 2 : 1;
    context.comp_info[0].h_samp_factor = factor;
    context.comp_info[0].v_samp_factor = factor;
    if (settings.progressive) jpeg_simple_progression(&context);
    jpeg_start_compress(&context, TRUE);
    if (settings.orientation != 1) write_orientation(context, settings.orientation);
    while (context.next_scanline < context.image_height) {
        JSAMPROW row = const_cast<JSAMPROW>(image.row(static_cast<int>(context.next_scanline)));
        jpeg_write_scanlines(&context, &row, 1);
    }
    jpeg_finish_compress(&context);
}

}  // namespace

std::string encode_jpeg(const ImageView& image, const JpegWriteSettings& settings) {
    SATURATE_CHECK(image.channels == 1 || image.channels == 3, "images are grey or RGB");
    check_image_size(image.size.width, image.size.height);
    Encoder encoder;
    compress(encoder, image, settings);
    return {reinterpret_cast<const char*>(encoder.memory), encoder.size};
}

void write_jpeg(const std::filesystem::path& path, const ImageView& image,
                const JpegWriteSettings& settings) {
    write_file_whole(path, encode_jpeg(image, settings));
}

}  // namespace saturate
