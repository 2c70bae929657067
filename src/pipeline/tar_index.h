// SPDX-License-Identifier: Apache-2.0
// Finds each file in a tar archive. Reads only headers: ustar, GNU long names and sizes, and pax.
// Archives come from untrusted sources: checksums and lengths are checked.
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

// Access to the bytes of an archive: a file, or memory in tests.
class TarBytes {
  public:
    virtual ~TarBytes() = default;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    // Reads exactly `count` bytes from `offset` on; the caller stays within size().
    virtual void read(std::uint64_t offset, std::size_t count, char* out) = 0;
};

// Returns the regular files in archive order. Throws UserError naming `file`.
[[nodiscard]] std::vector<TarEntry> index_tar(TarBytes& bytes, const std::string& file);
[[nodiscard]] std::vector<TarEntry> index_tar(const std::filesystem::path& path);

}  // namespace saturate
