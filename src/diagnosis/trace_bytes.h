// SPDX-License-Identifier: Apache-2.0
// A sliding window over the unpacked bytes of a trace file, so that the JSON reader needs only a
// few megabytes for a file of any size. Used by trace_read.cpp, from one thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/compress.h"
#include "diagnosis/trace_json.h"

namespace saturate {

inline constexpr std::size_t kChunk = 1 << 20;  // parsed in one go: fits the cache

class TraceBytes {
  public:
    explicit TraceBytes(ByteStream& stream) : stream_(stream) { buffer_.resize(2 * kChunk); }

    [[nodiscard]] std::string_view view() const { return {buffer_.data() + begin_, end_ - begin_}; }
    char* data() { return buffer_.data() + begin_; }
    void drop(std::size_t count) { begin_ += count; }

    // Reads until at least `least` bytes are there or the file ends. Returns false if nothing was
    // added.
    bool want(std::size_t least) {
        if (ended_ || view().size() >= least) return false;
        if (begin_ > 0) {
            std::memmove(buffer_.data(), data(), end_ - begin_);
            end_ -= begin_;
            begin_ = 0;
        }
        if (buffer_.size() < least + EventParser::kPadding)
            buffer_.resize(least + EventParser::kPadding);
        std::size_t count = stream_.read(buffer_.data() + end_, least - end_);
        ended_ = end_ + count < least;
        end_ += count;
        total_ += count;
        return count > 0;
    }
    [[nodiscard]] bool ended() const { return ended_; }
    [[nodiscard]] std::uint64_t total() const { return total_; }

    // Skips white space and returns the next character, or nullopt at the end.
    std::optional<char> peek() {
        for (;;) {
            std::string_view text = view();
            std::size_t at = text.find_first_not_of(" \n\r\t");
            if (at != std::string_view::npos) {
                drop(at);
                return text[at];
            }
            drop(text.size());
            if (!want(kChunk)) return std::nullopt;
        }
    }

  private:
    ByteStream& stream_;
    std::vector<char> buffer_;
    std::size_t begin_ = 0;
    std::size_t end_ = 0;
    std::uint64_t total_ = 0;
    bool ended_ = false;
};

}  // namespace saturate
