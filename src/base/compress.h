// SPDX-License-Identifier: Apache-2.0
// Reads a file as a stream of bytes and unpacks gzip and Zstandard on the way. Recognises them by
// the first bytes, not by the name. Memory use does not grow with the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace saturate {

class ByteStream {
  public:
    virtual ~ByteStream() = default;
    // Reads up to `size` bytes; fewer only at the end, and 0 if nothing is left. Throws UserError
    // if the unpacked data exceeds the limit (a gzip bomb).
    virtual std::size_t read(char* into, std::size_t size) = 0;
    // True if the packed data ended too early or was broken. All data before that was delivered.
    [[nodiscard]] virtual bool torn() const = 0;
};

// Throws UserError if the file is missing, a folder or unreadable. `limit_flag` is the option that
// raises the limit ("--limit"), for the message.
[[nodiscard]] std::unique_ptr<ByteStream> open_stream(const std::filesystem::path& path,
                                                      std::uint64_t limit_bytes,
                                                      std::string_view limit_flag);
// The same for bytes in memory, which must outlive the stream.
[[nodiscard]] std::unique_ptr<ByteStream> open_stream_of(std::string_view bytes,
                                                         std::uint64_t limit_bytes,
                                                         std::string_view limit_flag);

// Returns a gzip file with `content`. For small data that we write ourselves.
[[nodiscard]] std::string gzip(std::string_view content);

// Unpacks a raw deflate stream (as in a zip archive) whose unpacked size is known. Returns nothing
// if the stream is broken or has another size. Never holds more than `size` bytes.
[[nodiscard]] std::optional<std::string> inflate_raw(std::string_view packed, std::size_t size);

}  // namespace saturate
