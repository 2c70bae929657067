// SPDX-License-Identifier: Apache-2.0
#include "base/csv.h"

#include <fmt/format.h>

#include "base/error.h"

namespace saturate {

namespace {

class Cells {
  public:
    Cells(std::string_view text, const std::string& file) : text_(text), file_(file) {}

    [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
    [[nodiscard]] int line() const { return line_; }

    std::vector<std::string> next_row() {
        std::vector<std::string> cells;
        do {
            cells.push_back(next_cell());
        } while (!at_end() && text_[at_ - 1] == ',');
        return cells;
    }

  private:
    // Reads a cell. Leaves at_ after the comma or line end that closes it.
    std::string next_cell() {
        std::string cell;
        bool inside_quotes = false;
        int opened_at = line_;
        for (; at_ < text_.size(); ++at_) {
            char c = text_[at_];
            if (c == '"' && inside_quotes && at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
                cell += c;
                ++at_;
            } else if (c == '"') {
                inside_quotes = !inside_quotes;
                opened_at = line_;
            } else if (!inside_quotes && (c == ',' || c == '\n')) {
                if (c == '\n') ++line_;
                ++at_;
                if (c == '\n' && !cell.empty() && cell.back() == '\r') cell.pop_back();
                return cell;
            } else {
                if (c == '\n') ++line_;
                cell += c;
            }
        }
        if (inside_quotes) {
            throw UserError({.where = {file_, opened_at}, .found = "a quote that is never closed"});
        }
        ++at_;
        return cell;
    }

    std::string_view text_;
    const std::string& file_;
    std::size_t at_ = 0;
    int line_ = 1;
};

}  // namespace

std::vector<CsvRow> parse_csv(std::string_view text, const std::string& file) {
    Cells cells(text, file);
    std::vector<CsvRow> rows;
    if (cells.at_end()) return rows;
    std::vector<std::string> header = cells.next_row();
    while (!cells.at_end()) {
        int line = cells.line();
        std::vector<std::string> values = cells.next_row();
        if (values.size() == 1 && values[0].empty()) continue;
        if (values.size() != header.size()) {
            throw UserError({.where = {file, line},
                             .found = fmt::format("{} cells", values.size()),
                             .expected = fmt::format("{}, as in the header", header.size())});
        }
        CsvRow row;
        for (std::size_t i = 0; i < header.size(); ++i) row[header[i]] = std::move(values[i]);
        rows.push_back(std::move(row));
    }
    return rows;
}

}  // namespace saturate
