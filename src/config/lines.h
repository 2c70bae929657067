// SPDX-License-Identifier: Apache-2.0
// Lines and columns of a text by byte. Used by the readers (places of values) and the editor
// (comments, new lines).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace saturate {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class Lines {
  public:
    // Both must outlive this object.
    Lines(std::string_view text, const std::string& file);

    // Line and column from 1. A Chinese character is one column, a byte order mark none. Fast if
    // called in the order of the text, as the readers do, even on one line of many megabytes.
    [[nodiscard]] Place place(std::size_t at);

    [[nodiscard]] std::size_t index(std::size_t at) const;  // number of the line, from 0
    [[nodiscard]] std::size_t begin(std::size_t at) const;  // its first byte, after a mark
    [[nodiscard]] std::size_t end(std::size_t at) const;    // after its last byte, before \r\n
    [[nodiscard]] std::size_t next(std::size_t at) const;   // start of the next line, or the size
    [[nodiscard]] std::size_t count() const { return starts_.size(); }
    [[nodiscard]] std::size_t start(std::size_t index) const { return starts_[index]; }
    // The ending of this line, else of the file's first line, else "\n".
    [[nodiscard]] std::string_view ending(std::size_t at) const;

  private:
    std::string_view text_;
    const std::string& file_;
    std::vector<std::size_t> starts_;
    std::size_t last_at_ = 0;  // the previous argument of place(), to go on from there
    std::size_t last_line_ = 0;
    int last_column_ = 1;
};

}  // namespace saturate
