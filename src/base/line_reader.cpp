// SPDX-License-Identifier: Apache-2.0
#include "base/line_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace saturate {

namespace {
constexpr std::size_t kChunk = 64 * 1024;
}

LineReader::LineReader(const std::filesystem::path& path, std::string_view what,
                       std::size_t longest_bytes)
    : longest_(longest_bytes) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
        throw UserError(
            {.where = {path.string()}, .found = "this is a folder", .expected = std::string(what)});
    }
    errno = 0;
    file_.open(path, std::ios::binary);
    if (!file_) {
        throw UserError({.where = {path.string()},
                         .found = fmt::format("not readable: {}", std::strerror(errno)),
                         .expected = std::string(what)});
    }
}

void LineReader::start_at(std::uint64_t position, std::int64_t lines) {
    file_.seekg(static_cast<std::streamoff>(position));
    position_ = position;
    number_ = lines;
}

std::optional<Line> LineReader::next() {
    line_.clear();
    Line out{.number = ++number_};
    while (true) {
        if (used_ == chunk_.size()) {
            chunk_.resize(kChunk);
            file_.read(chunk_.data(), static_cast<std::streamsize>(kChunk));
            chunk_.resize(static_cast<std::size_t>(file_.gcount()));
            used_ = 0;
            if (chunk_.empty()) {
                if (line_.empty() && !out.too_long) return std::nullopt;
                out.whole = false;
                break;
            }
        }
        std::size_t end = chunk_.find('\n', used_);
        std::size_t count = std::min(end, chunk_.size()) - used_;
        std::size_t room = longest_ - line_.size();
        if (count > room) out.too_long = true;
        line_.append(chunk_, used_, std::min(count, room));
        used_ += count;
        position_ += count;
        if (end != std::string::npos) {
            ++used_;
            ++position_;
            break;
        }
    }
    out.text = line_;
    return out;
}

}  // namespace saturate
