// SPDX-License-Identifier: Apache-2.0
#include "report/text_table.h"

#include <algorithm>

#include "base/text.h"

namespace saturate {

void TextTable::add_below(std::size_t column, std::string text) {
    std::vector<std::string> row(column);
    row.push_back(std::move(text));
    rows_.push_back(std::move(row));
}

std::string TextTable::text(std::size_t indent) const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_) {
        widths.resize(std::max(widths.size(), row.size()));
        // The last cell of a row may be longer than its column without widening it.
        for (std::size_t i = 0; i + 1 < row.size(); ++i)
            widths[i] = std::max(widths[i], display_width(row[i]));
    }
    std::string out;
    for (const auto& row : rows_) {
        std::string line(indent, ' ');
        for (std::size_t i = 0; i < row.size(); ++i) line += pad_right(row[i], widths[i]) + "  ";
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + '\n';
    }
    return out;
}

}  // namespace saturate
