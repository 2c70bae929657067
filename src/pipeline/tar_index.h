// SPDX-License-Identifier: Apache-2.0
// Where each file of a tar archive lies. Reads headers only: ustar, GNU long names and sizes, and
// pax. Archives come from strangers: checksums and lengths are checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace saturate {

struct TarEntry {
    std::string name;
    std::uint64_t offset = 0;  // of its first byte in the archive
    std::uint64_t size = 0;
    bool operator==(const TarEntry&) const = default;
};

// Where the bytes of an archive come from; a file, or memory in tests.
class TarBytes {
  public:
    virtual ~TarBytes() = default;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    // Exactly `count` bytes from `offset` on, which lie within size().
    virtual void read(std::uint64_t offset, std::size_t count, char* out) = 0;
};

// The regular files in the order in which they lie. Throws UserError naming `file`.
[[nodiscard]] std::vector<TarEntry> index_tar(TarBytes& bytes, const std::string& file);
[[nodiscard]] std::vector<TarEntry> index_tar(const std::filesystem::path& path);

}  // namespace saturate
