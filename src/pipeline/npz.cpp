// SPDX-License-Identifier: Apache-2.0
// The zip archive around .npz members: the directory at its end tells where they are. Members
// stored without compression stay mapped.
#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <string_view>

#include "base/compress.h"
#include "base/error.h"
#include "pipeline/npy.h"

namespace saturate {

namespace {

constexpr std::uint64_t kUnpackedMax = 64ull << 30;

// Reads little-endian numbers at an offset; every access is checked.
class Bytes {
  public:
    Bytes(std::string_view text, std::string place) : text_(text), place_(std::move(place)) {}

    [[nodiscard]] std::uint64_t number(std::uint64_t at, int bytes) const {
        std::string_view raw = part(at, static_cast<std::uint64_t>(bytes));
        std::uint64_t value = 0;
        for (int i = bytes - 1; i >= 0; --i)
            value = value << 8 | static_cast<unsigned char>(raw[static_cast<std::size_t>(i)]);
        return value;
    }
    [[nodiscard]] std::string_view part(std::uint64_t at, std::uint64_t bytes) const {
        if (at > text_.size() || bytes > text_.size() - at) throw torn();
        return text_.substr(at, bytes);
    }
    [[nodiscard]] UserError torn() const { return fail("a truncated or broken archive"); }
    [[nodiscard]] UserError fail(const std::string& found) const {
        return UserError({.where = {place_},
                          .found = found,
                          .expected = "an archive as numpy.savez writes it",
                          .fix = ""});
    }
    [[nodiscard]] std::string_view all() const { return text_; }

  private:
    std::string_view text_;
    std::string place_;
};

struct ZipMember {
    std::string name;
    std::uint64_t method = 0, packed = 0, size = 0, header = 0;
};

// Sizes beyond 4 GB are in an extra field, in the order of the fields that are all ones.
void read_large_sizes(const Bytes& zip, std::uint64_t at, std::uint64_t end, ZipMember& member) {
    while (at + 4 <= end) {
        std::uint64_t id = zip.number(at, 2), bytes = zip.number(at + 2, 2);
        if (id == 1) {
            std::uint64_t field = at + 4;
            for (std::uint64_t* value : {&member.size, &member.packed, &member.header}) {
                if (*value != 0xFFFFFFFF) continue;
                if (field + 8 > at + 4 + bytes) throw zip.torn();
                *value = zip.number(field, 8);
                field += 8;
            }
        }
        at += 4 + bytes;
    }
}

std::vector<ZipMember> directory(const Bytes& zip) {
    std::string_view text = zip.all();
    // The end record has 22 bytes plus a comment of at most 65535.
    std::size_t tail = text.size() > 65557 ? text.size() - 65557 : 0;
    std::size_t end = text.substr(tail).rfind("PK\x05\x06");
    if (end == std::string_view::npos) throw zip.torn();
    end += tail;
    (void)zip.part(end, 22);
    std::uint64_t count = zip.number(end + 10, 2), at = zip.number(end + 16, 4);
    if (at == 0xFFFFFFFF || count == 0xFFFF) {
        if (end < 20 || zip.part(end - 20, 4) != "PK\x06\x07") throw zip.torn();
        std::uint64_t wide = zip.number(end - 12, 8);
        if (zip.part(wide, 4) != "PK\x06\x06") throw zip.torn();
        count = zip.number(wide + 32, 8);
        at = zip.number(wide + 48, 8);
    }
    std::vector<ZipMember> members;
    for (std::uint64_t i = 0; i < count; ++i) {
        if (zip.part(at, 4) != "PK\x01\x02") throw zip.torn();
        std::uint64_t name = zip.number(at + 28, 2), extra = zip.number(at + 30, 2);
        ZipMember member{.name = std::string(zip.part(at + 46, name)),
                         .method = zip.number(at + 10, 2),
                         .packed = zip.number(at + 20, 4),
                         .size = zip.number(at + 24, 4),
                         .header = zip.number(at + 42, 4)};
        read_large_sizes(zip, at + 46 + name, at + 46 + name + extra, member);
        members.push_back(std::move(member));
        at += 46 + name + extra + zip.number(at + 32, 2);
    }
    return members;
}

}  // namespace

std::vector<NpyArray> parse_npz(std::span<const std::byte> bytes, const std::string& place,
                                const std::shared_ptr<const void>& memory) {
    Bytes zip({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, place);
    std::vector<NpyArray> arrays;
    std::uint64_t unpacked_bytes = 0;
    for (const ZipMember& member : directory(zip)) {
        if (!member.name.ends_with(".npy")) continue;
        if (zip.part(member.header, 4) != "PK\x03\x04") throw zip.torn();
        std::uint64_t start = member.header + 30 + zip.number(member.header + 26, 2) +
                              zip.number(member.header + 28, 2);
        std::string_view packed = zip.part(start, member.packed);
        std::string inner = place + ":" + member.name;
        if (member.method == 0) {
            arrays.push_back(parse_npy(bytes.subspan(start, packed.size()), inner, memory));
        } else if (member.method == 8) {
            unpacked_bytes += member.size;
            if (member.size > kUnpackedMax || unpacked_bytes > kUnpackedMax)
                throw zip.fail("unpacks to more than 64 GiB");
            std::optional<std::string> content = inflate_raw(packed, member.size);
            if (!content) throw zip.fail(fmt::format("{} cannot be unpacked", member.name));
            auto kept = std::make_shared<std::string>(std::move(*content));
            arrays.push_back(parse_npy(std::as_bytes(std::span(*kept)), inner, kept));
        } else {
            throw zip.fail(
                fmt::format("{} is compressed with method {}", member.name, member.method));
        }
        arrays.back().name = member.name.substr(0, member.name.size() - 4);
    }
    if (arrays.empty()) throw zip.fail("no array in this archive");
    return arrays;
}

}  // namespace saturate
