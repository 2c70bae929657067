// SPDX-License-Identifier: Apache-2.0
#include "pipeline/tar_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/text.h"

namespace saturate {

namespace {

constexpr std::uint64_t kBlock = 512;
constexpr std::uint64_t kLongNameMax = 1 << 20;  // of a name or a pax header

[[noreturn]] void fail(const std::string& file, std::uint64_t offset, const std::string& what) {
    throw UserError({.where = {file},
                     .found = fmt::format("{} at byte {}", what, offset),
                     .expected = "a tar archive, not compressed",
                     .fix = "fetch or pack the shard again"});
}

// Reads octal digits, or a base-256 number if the first bit is set.
std::optional<std::uint64_t> number(const char* field, std::size_t length) {
    if (static_cast<unsigned char>(field[0]) & 0x80) {
        std::uint64_t value = static_cast<unsigned char>(field[0]) & 0x3F;
        for (std::size_t i = 1; i < length; ++i) {
            if (value >> 54) return std::nullopt;
            value = value << 8 | static_cast<unsigned char>(field[i]);
        }
        return value;
    }
    std::uint64_t value = 0;
    std::string_view digits = trim(std::string_view(field, ::strnlen(field, length)));
    for (char digit : digits) {
        if (digit < '0' || digit > '7') return std::nullopt;
        value = value * 8 + static_cast<std::uint64_t>(digit - '0');
    }
    return value;
}

std::string text_of(const char* field, std::size_t length) {
    return {field, ::strnlen(field, length)};
}

bool checksum_holds(const char* header) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kBlock; ++i)
        sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
    return number(header + 148, 8) == sum;
}

// What an extension header says about the next file.
struct Override {
    std::optional<std::string> name;
    std::optional<std::uint64_t> size;
};

// Reads pax records: "<length> <key>=<value>\n", repeated.
bool read_pax(std::string_view text, Override& next) {
    while (!text.empty()) {
        std::size_t space = text.find(' ');
        if (space == std::string_view::npos) return false;
        auto length = parse_integer(text.substr(0, space));
        if (!length || *length <= static_cast<std::int64_t>(space) + 1 ||
            static_cast<std::uint64_t>(*length) > text.size())
            return false;
        std::string_view record =
            text.substr(space + 1, static_cast<std::size_t>(*length) - space - 2);
        std::size_t equals = record.find('=');
        if (equals == std::string_view::npos) return false;
        std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
        if (key == "path") next.name = std::string(value);
        if (key == "size") {
            auto size = parse_integer(value);
            if (!size || *size < 0) return false;
            next.size = static_cast<std::uint64_t>(*size);
        }
        text.remove_prefix(static_cast<std::size_t>(*length));
    }
    return true;
}

std::string plain_name(const char* header) {
    std::string name = text_of(header, 100);
    bool has_prefix = std::memcmp(header + 257, "ustar", 6) == 0 && header[345] != '\0';
    return has_prefix ? text_of(header + 345, 155) + "/" + name : name;
}

class FileBytes final : public TarBytes {
  public:
    explicit FileBytes(const std::filesystem::path& path)
        : path_(path.string()), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
        struct stat status {};
        if (!file_.is_open() || ::fstat(file_.get(), &status) != 0) stop(errno);
        if (!S_ISREG(status.st_mode)) stop(EISDIR);
        size_ = static_cast<std::uint64_t>(status.st_size);
    }
    [[nodiscard]] std::uint64_t size() const override { return size_; }
    void read(std::uint64_t offset, std::size_t count, char* out) override {
        while (count > 0) {
            ssize_t got = ::pread(file_.get(), out, count, static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) stop(got < 0 ? errno : EIO);
            out += got;
            offset += static_cast<std::uint64_t>(got);
            count -= static_cast<std::size_t>(got);
        }
    }

  private:
    [[noreturn]] void stop(int error) {
        throw UserError({.where = {path_},
                         .found = fmt::format("cannot be read: {}", std::strerror(error)),
                         .expected = "a tar archive"});
    }
    std::string path_;
    Descriptor file_;
    std::uint64_t size_ = 0;
};

}  // namespace

std::vector<TarEntry> index_tar(TarBytes& bytes, const std::string& file) {
    std::vector<TarEntry> entries;
    Override next;
    std::uint64_t at = 0, end = bytes.size();
    char header[kBlock];
    while (at < end) {
        if (end - at < kBlock) fail(file, at, "ends in the middle of a header");
        bytes.read(at, kBlock, header);
        if (std::all_of(header, header + kBlock, [](char c) { return c == 0; })) break;
        if (!checksum_holds(header)) fail(file, at, "no tar header");
        char type = header[156];
        auto size = number(header + 124, 12);
        bool describes = type == 'L' || type == 'x' || type == 'g' || type == 'K';
        if (size && !describes && next.size) size = next.size;
        if (!size) fail(file, at, "a size that is not a number");
        std::uint64_t body = at + kBlock;
        if (*size > end - body)
            fail(file, at, fmt::format("ends in the middle of {}", in_quotes(plain_name(header))));
        if (describes) {
            if (*size > kLongNameMax) fail(file, at, "a name of more than a megabyte");
            std::string text(static_cast<std::size_t>(*size), '\0');
            bytes.read(body, text.size(), text.data());
            if (type == 'L') next.name = text_of(text.data(), text.size());
            if (type == 'x' && !read_pax(text, next)) fail(file, at, "a broken pax header");
        } else {
            if (type == '0' || type == '\0' || type == '7')
                entries.push_back({next.name.value_or(plain_name(header)), body, *size});
            next = {};
        }
        std::uint64_t blocks = (*size + kBlock - 1) / kBlock;
        if (blocks > (end - body) / kBlock) break;  // the padding of the last file is missing
        at = body + blocks * kBlock;
    }
    return entries;
}

std::vector<TarEntry> index_tar(const std::filesystem::path& path) {
    FileBytes bytes(path);
    return index_tar(bytes, path.string());
}

}  // namespace saturate
