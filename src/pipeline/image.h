// SPDX-License-Identifier: Apache-2.0
// Pixels between a file and a batch: 8 bit, interleaved, 1 or 3 channels, and memory that is reused
// from sample to sample. Plain values, used by one worker thread each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

namespace saturate {

using Bytes = std::span<const std::uint8_t>;

// Reusable memory that only grows. Growing loses the contents, and nothing is cleared.
template <typename T>
class Buffer {
  public:
    [[nodiscard]] T* get(std::size_t count) {
        if (count > capacity_) {
            memory_.reset();  // first, so that both never exist at once
            capacity_ = 0;
            memory_ = std::make_unique_for_overwrite<T[]>(count + count / 8);
            capacity_ = count + count / 8;
        }
        return memory_.get();
    }
    [[nodiscard]] std::size_t bytes() const { return capacity_ * sizeof(T); }

  private:
    std::unique_ptr<T[]> memory_;
    std::size_t capacity_ = 0;
};

struct ImageSize {
    int width = 0;
    int height = 0;
    bool operator==(const ImageSize&) const = default;
};

// A rectangle of an image, in pixels.
struct Region {
    int x = 0;
    int y = 0;
    int width = 0;
    int height = 0;
    bool operator==(const Region&) const = default;
};

// A view of pixels that another object owns.
struct ImageView {
    const std::uint8_t* pixels = nullptr;
    ImageSize size;
    int channels = 0;
    std::size_t stride = 0;  // bytes from row to row

    [[nodiscard]] const std::uint8_t* row(int y) const {
        return pixels + static_cast<std::size_t>(y) * stride;
    }
};

// The reason why a file cannot be used as an image. The source adds the name and
// rethrows it as BadSample.
class BadImage : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Limits for image headers, which come from untrusted files.
inline constexpr std::int64_t kImagePixelsMax = 178'956'970;  // 512 MiB of RGB; Pillow's limit too
inline constexpr int kImageSideMax = 65'535;
inline constexpr std::uint64_t kImageBytesMax = 512ull << 20;    // of one image in its own depth
void check_image_size(std::int64_t width, std::int64_t height);  // throws BadImage

}  // namespace saturate
