// SPDX-License-Identifier: Apache-2.0
// Reads a text file line by line with a bounded buffer, for records and recordings that may be
// larger than memory or end in the middle of a line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace saturate {

struct Line {
    std::string_view text;  // without its newline; valid until the next call
    std::int64_t number = 0;
    bool whole = true;      // false: the last line, without a newline
    bool too_long = false;  // `text` has only the first bytes of the line
};

class LineReader {
  public:
    // Throws UserError if the file is missing or unreadable; `what` names it in the message.
    LineReader(const std::filesystem::path& path, std::string_view what,
               std::size_t longest_bytes = 16u << 20);
    // Continues after `position` bytes and `lines` lines, where an earlier reader stopped.
    void start_at(std::uint64_t position, std::int64_t lines);
    // Returns the next line, or nothing at the end of the file.
    std::optional<Line> next();
    [[nodiscard]] std::uint64_t position() const { return position_; }  // end of the last line

  private:
    std::ifstream file_;
    std::string line_;
    std::string chunk_;
    std::size_t used_ = 0;  // used bytes of chunk_
    std::size_t longest_;
    std::int64_t number_ = 0;
    std::uint64_t position_ = 0;
};

}  // namespace saturate
