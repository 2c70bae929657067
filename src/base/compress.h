// SPDX-License-Identifier: Apache-2.0
// A file as a stream of bytes, unpacked on the way when it is gzip or Zstandard. Recognised by its
// first bytes, not by its name. Memory does not grow with the file.
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
    // Fills up to `size` bytes; fewer only at the end, 0 when there is nothing left. Throws
    // UserError when more than the limit comes out (a gzip bomb).
    virtual std::size_t read(char* into, std::size_t size) = 0;
    // True once the packed data ended too early or broke; what came before was delivered.
    [[nodiscard]] virtual bool torn() const = 0;
};

// Throws UserError for what is missing, a folder or unreadable. `limit_flag` is the option that the
// message names for raising the limit ("--limit").
[[nodiscard]] std::unique_ptr<ByteStream> open_stream(const std::filesystem::path& path,
                                                      std::uint64_t limit_bytes,
                                                      std::string_view limit_flag);
// The same over bytes in memory, which must outlive the stream.
[[nodiscard]] std::unique_ptr<ByteStream> open_stream_of(std::string_view bytes,
                                                         std::uint64_t limit_bytes,
                                                         std::string_view limit_flag);

// A gzip file of `content`; for small things that we write ourselves.
[[nodiscard]] std::string gzip(std::string_view content);

// The bytes of a raw deflate stream (as in a zip archive) that is known to unpack to `size` bytes;
// nothing when it is broken or unpacks to another size. Not more than `size` is ever held.
[[nodiscard]] std::optional<std::string> inflate_raw(std::string_view packed, std::size_t size);

}  // namespace saturate
