// SPDX-License-Identifier: Apache-2.0
// Columns of text for a terminal, aligned by what the characters take on the screen.
#pragma once

#include <string>
#include <vector>

namespace saturate {

class TextTable {
  public:
    explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    // A line below the last row, beginning at a column.
    void add_below(std::size_t column, std::string text);

    // Each line begins with `indent` spaces and ends without any.
    [[nodiscard]] std::string text(std::size_t indent = 2) const;

  private:
    std::vector<std::vector<std::string>> rows_;  // the header first
};

}  // namespace saturate
