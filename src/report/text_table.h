// SPDX-License-Identifier: Apache-2.0
// A table of text for a terminal, aligned by the display width of the characters.
#pragma once

#include <string>
#include <vector>

namespace saturate {

class TextTable {
  public:
    explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    // Adds a line below the last row that starts at a column.
    void add_below(std::size_t column, std::string text);

    // Each line starts with `indent` spaces and has none at its end.
    [[nodiscard]] std::string text(std::size_t indent = 2) const;

  private:
    std::vector<std::vector<std::string>> rows_;  // header first
};

}  // namespace saturate
