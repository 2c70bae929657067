// SPDX-License-Identifier: Apache-2.0
#include "pipeline/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "pipeline/mapped_file.h"

namespace saturate {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

std::string_view text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The header is a Python dict in a fixed form: {'descr': '<f4', 'fortran_order': False, 'shape':
// (3, 4), }. Returns the text after a key, up to one of `ends`.
std::optional<std::string_view> value_after(std::string_view header, std::string_view key,
                                            std::string_view ends) {
    std::size_t at = header.find(key);
    if (at == std::string_view::npos) return std::nullopt;
    std::string_view rest = header.substr(at + key.size());
    std::size_t colon = rest.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    rest = trim(rest.substr(colon + 1));
    std::size_t end = rest.find_first_of(ends);
    if (end == std::string_view::npos) return std::nullopt;
    return trim(rest.substr(0, end));
}

std::optional<NumberType> type_of(std::string_view descr) {
    // '<f4': byte order, kind, bytes. '>' is fine for single bytes.
    if (descr.size() != 5 || descr.front() != '\'' || descr.back() != '\'') return std::nullopt;
    char order = descr[1], kind = descr[2], bytes = descr[3];
    NumberType type{.kind = kind, .bytes = bytes - '0'};
    bool known = (kind == 'f' && (bytes == '2' || bytes == '4' || bytes == '8')) ||
                 ((kind == 'i' || kind == 'u') &&
                  (bytes == '1' || bytes == '2' || bytes == '4' || bytes == '8')) ||
                 (kind == 'b' && bytes == '1');
    bool readable = order == '<' || order == '|' || (order == '=' || type.bytes == 1);
    return known && readable ? std::optional(type) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> shape_of(std::string_view tuple) {
    std::vector<std::int64_t> shape;
    for (std::string_view part : split(tuple, ',')) {
        part = trim(part);
        if (part.empty()) continue;  // (3,)
        std::optional<std::int64_t> length = parse_integer(part);
        if (!length || *length < 0) return std::nullopt;
        shape.push_back(*length);
    }
    return shape.size() <= 32 ? std::optional(shape) : std::nullopt;
}

// Number of elements of a shape, or nothing if they cannot fit into `bytes`.
std::optional<std::size_t> elements_within(const std::vector<std::int64_t>& shape,
                                           int element_bytes, std::size_t bytes) {
    std::size_t limit = bytes / static_cast<std::size_t>(element_bytes), count = 1;
    if (std::ranges::find(shape, 0) != shape.end()) return 0;
    for (std::int64_t length : shape) {
        if (static_cast<std::size_t>(length) > limit / count) return std::nullopt;
        count *= static_cast<std::size_t>(length);
    }
    return count;
}

}  // namespace

NpyArray parse_npy(std::span<const std::byte> bytes, const std::string& place,
                   std::shared_ptr<const void> memory) {
    auto fail = [&](const std::string& found, const std::string& fix = "") {
        return UserError({.where = {place},
                          .found = found,
                          .expected = "an array as numpy.save writes it",
                          .fix = fix});
    };
    std::string_view text = text_of(bytes);
    if (!text.starts_with(kMagic) || text.size() < 12) throw fail("not an npy array");
    int version = static_cast<unsigned char>(text[6]);
    if (version < 1 || version > 3) throw fail(fmt::format("npy version {}", version));
    std::size_t length_bytes = version == 1 ? 2 : 4, header_bytes = 0;
    for (std::size_t i = 0; i < length_bytes; ++i)
        header_bytes |= std::size_t{static_cast<unsigned char>(text[8 + i])} << (8 * i);
    std::size_t start = 8 + length_bytes;
    if (header_bytes > text.size() - start || header_bytes > 65536)
        throw fail("a truncated npy header");
    std::string_view header = text.substr(start, header_bytes);
    auto descr = value_after(header, "'descr'", ",}");
    auto order = value_after(header, "'fortran_order'", ",}");
    auto tuple = value_after(header, "'shape'", ")");
    if (!descr || !order || !tuple || !tuple->starts_with('(')) throw fail("a broken npy header");
    std::optional<NumberType> type = type_of(*descr);
    if (!type)
        throw fail(fmt::format("dtype {}", in_quotes(*descr)),
                   "numbers of this machine's byte order: array.astype('<f4')");
    std::optional<std::vector<std::int64_t>> shape = shape_of(tuple->substr(1));
    if (!shape) throw fail(fmt::format("shape {})", in_quotes(*tuple)));
    if (*order != "False" && shape->size() > 1)
        throw fail("Fortran order", "numpy.ascontiguousarray(array)");
    std::size_t data_bytes = text.size() - start - header_bytes;
    std::optional<std::size_t> count = elements_within(*shape, type->bytes, data_bytes);
    if (!count)
        throw fail(fmt::format("shape {}) needs more than the {} bytes in the file",
                               in_quotes(*tuple), data_bytes));
    return {
        .name = std::filesystem::path(place).stem().string(),
        .type = *type,
        .shape = *shape,
        .data = bytes.subspan(start + header_bytes, *count * static_cast<std::size_t>(type->bytes)),
        .memory = std::move(memory)};
}

std::vector<NpyArray> open_arrays(const std::filesystem::path& path) {
    std::vector<std::filesystem::path> files;
    if (std::filesystem::is_directory(path)) {
        for (const auto& entry : std::filesystem::directory_iterator(path)) {
            if (entry.path().extension() == ".npy") files.push_back(entry.path());
        }
        std::ranges::sort(files);
        if (files.empty())
            throw UserError({.where = {path.string()},
                             .found = "no .npy file in this folder",
                             .expected = "one per field",
                             .fix = ""});
    } else {
        files.push_back(path);
    }
    std::vector<NpyArray> arrays;
    for (const std::filesystem::path& file : files) {
        auto mapped = std::make_shared<MappedFile>(file, "an array as numpy.save writes it");
        if (mapped->text().starts_with("PK"))
            return parse_npz(mapped->bytes(), file.string(), mapped);
        arrays.push_back(parse_npy(mapped->bytes(), file.string(), mapped));
    }
    return arrays;
}

}  // namespace saturate
