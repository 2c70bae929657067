// SPDX-License-Identifier: Apache-2.0
#include "config/lines.h"

#include <algorithm>

namespace saturate {

Lines::Lines(std::string_view text, const std::string& file) : text_(text), file_(file) {
    starts_.push_back(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
    for (std::size_t at = 0; (at = text.find('\n', at)) != std::string_view::npos;)
        starts_.push_back(++at);
    last_at_ = starts_[0];
}

std::size_t Lines::index(std::size_t at) const {
    auto after = std::upper_bound(starts_.begin(), starts_.end(), at);
    return after == starts_.begin() ? 0 : static_cast<std::size_t>(after - starts_.begin()) - 1;
}

std::size_t Lines::begin(std::size_t at) const { return starts_[index(at)]; }

std::size_t Lines::end(std::size_t at) const {
    std::size_t end = next(at);
    if (end > begin(at) && text_[end - 1] == '\n') --end;
    if (end > begin(at) && text_[end - 1] == '\r') --end;
    return end;
}

std::size_t Lines::next(std::size_t at) const {
    std::size_t line = index(at) + 1;
    return line < starts_.size() ? starts_[line] : text_.size();
}

std::string_view Lines::ending(std::size_t at) const {
    std::size_t next_line = next(at);
    if (next_line == begin(at) || text_[next_line - 1] != '\n') {
        if (starts_.size() < 2) return "\n";
        next_line = starts_[1];
    }
    return next_line >= 2 && text_[next_line - 2] == '\r' ? "\r\n" : "\n";
}

Place Lines::place(std::size_t at) {
    at = std::clamp(at, starts_[0], text_.size());
    std::size_t line = index(at);
    if (line != last_line_ || at < last_at_) {
        last_at_ = starts_[line];
        last_line_ = line;
        last_column_ = 1;
    }
    for (; last_at_ < at; ++last_at_) {
        bool continues = (static_cast<unsigned char>(text_[last_at_]) & 0xC0) == 0x80;
        if (!continues) ++last_column_;
    }
    return {file_, static_cast<int>(line) + 1, last_column_};
}

}  // namespace saturate
