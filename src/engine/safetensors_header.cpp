// SPDX-License-Identifier: Apache-2.0
#include "engine/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace saturate {

void refuse_safetensors(const std::string& path, const std::string& found) {
    throw UserError({.where = {path},
                     .found = found,
                     .expected = "a safetensors file",
                     .fix = "use another checkpoint, or make this one again"});
}

namespace {

// Reads one tensor's entry and checks it against the length of the data.
StoredTensor read_tensor(const std::string& path, const std::string& name, const Json& fields,
                         std::uint64_t data_bytes) {
    StoredTensor entry{.name = name, .type = fields["dtype"].string().value_or("")};
    std::string shown = in_quotes(name);
    auto known = std::ranges::find(kStoredTypes, entry.type, &StoredType::name);
    if (known == std::end(kStoredTypes))
        refuse_safetensors(path,
                           fmt::format("tensor {} has type {}", shown, in_quotes(entry.type)));
    std::uint64_t bytes = known->bytes;
    if (!fields["shape"].is_array() || fields["shape"].items().size() > 64)
        refuse_safetensors(path, fmt::format("tensor {} has no shape", shown));
    for (const Json& item : fields["shape"].items()) {
        auto length = item.integer();
        if (!length || *length < 0)
            refuse_safetensors(
                path, fmt::format("the shape of tensor {} is not made of whole numbers", shown));
        entry.shape.push_back(*length);
        if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(*length), &bytes))
            refuse_safetensors(
                path, fmt::format("the shape of tensor {} is too large for any file", shown));
    }
    const Json::Array& offsets = fields["data_offsets"].items();
    auto begin = offsets.size() == 2 ? offsets[0].integer() : std::nullopt;
    auto end = offsets.size() == 2 ? offsets[1].integer() : std::nullopt;
    if (!begin || !end || *begin < 0 || *end < *begin ||
        static_cast<std::uint64_t>(*end) > data_bytes) {
        refuse_safetensors(path, fmt::format("tensor {} lies outside the file", shown));
    }
    entry.begin = static_cast<std::uint64_t>(*begin);
    entry.end = static_cast<std::uint64_t>(*end);
    if (entry.end - entry.begin != bytes)
        refuse_safetensors(path, fmt::format("tensor {} has {} bytes for a shape of {}", shown,
                                             entry.end - entry.begin, bytes));
    return entry;
}

}  // namespace

std::vector<StoredTensor> read_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                                  const std::string& path) {
    Json header = Json::parse(text, path);
    if (!header.is_object()) refuse_safetensors(path, "its header is not an object");
    std::vector<StoredTensor> entries;
    std::set<std::string> names;
    for (const auto& [name, fields] : header.members()) {
        if (name == "__metadata__") continue;
        if (!names.insert(name).second)
            refuse_safetensors(path, fmt::format("tensor {} appears twice", in_quotes(name)));
        entries.push_back(read_tensor(path, name, fields, data_bytes));
    }
    // The format requires that the tensors fill the file one after the other: nothing shared,
    // nothing hidden.
    std::vector<StoredTensor> sorted = entries;
    std::ranges::sort(sorted, {}, [](const StoredTensor& e) { return std::pair(e.begin, e.end); });
    std::uint64_t at = 0;
    for (const StoredTensor& entry : sorted) {
        if (entry.begin != at)
            refuse_safetensors(path, fmt::format("tensor {} begins at {} instead of {}",
                                                 in_quotes(entry.name), entry.begin, at));
        at = entry.end;
    }
    if (at != data_bytes)
        refuse_safetensors(path, fmt::format("{} bytes belong to no tensor", data_bytes - at));
    return entries;
}

}  // namespace saturate
