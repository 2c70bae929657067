// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "pipeline/table.h"

namespace saturate {

namespace {

struct CsvFormat {
    char separator = ',';
    bool decimal_comma = false;
};

// Cuts lines off the front of a text; they end with \n or \r\n.
class LineCutter {
  public:
    explicit LineCutter(std::string_view text) : rest_(text) {}
    // Skips empty lines, but counts them.
    std::optional<std::string_view> next() {
        while (!rest_.empty()) {
            std::size_t end = std::min(rest_.find('\n'), rest_.size());
            std::string_view line = rest_.substr(0, end);
            rest_.remove_prefix(std::min(end + 1, rest_.size()));
            ++number_;
            if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
            if (!trim(line).empty()) return line;
        }
        return std::nullopt;
    }
    [[nodiscard]] int number() const { return number_; }

  private:
    std::string_view rest_;
    int number_ = 0;
};

std::string_view unquoted(std::string_view cell) {
    cell = trim(cell);
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"')
        cell = cell.substr(1, cell.size() - 2);
    return cell;
}

// Splits a line into cells, ignoring separators inside quotes.
void cut(std::string_view line, char separator, std::vector<std::string_view>& cells) {
    cells.clear();
    std::size_t start = 0;
    bool in_quotes = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '"') in_quotes = !in_quotes;
        if (line[i] != separator || in_quotes) continue;
        cells.push_back(unquoted(line.substr(start, i - start)));
        start = i + 1;
    }
    cells.push_back(unquoted(line.substr(start)));
}

bool is_missing(std::string_view cell) {
    if (cell.empty() || cell == "?") return true;
    if (cell.size() > 4) return false;
    std::string word = lower(cell);
    return word == "na" || word == "nan" || word == "null" || word == "n/a" || word == "none";
}

std::optional<float> number_of(std::string_view cell, const CsvFormat& format) {
    if (!cell.empty() && cell.front() == '+') cell.remove_prefix(1);
    char with_point[64];
    std::size_t comma = format.decimal_comma ? cell.find(',') : std::string_view::npos;
    if (comma != std::string_view::npos && cell.size() < sizeof with_point) {
        std::copy(cell.begin(), cell.end(), with_point);
        with_point[comma] = '.';
        cell = {with_point, cell.size()};
    }
    float value = 0;
    auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (end != cell.data() + cell.size()) return std::nullopt;
    if (error == std::errc::result_out_of_range) {  // 1e-50 becomes 0; 1e50 is not a valid number
        double wide = 0;
        std::from_chars(cell.data(), cell.data() + cell.size(), wide);
        return std::abs(wide) < 1 ? std::optional(0.0f) : std::nullopt;
    }
    if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
    return value;
}

CsvFormat sniff(std::string_view first_line) {
    auto count = [&](char c) { return std::ranges::count(first_line, c); };
    if (count(';') > 0) return {.separator = ';', .decimal_comma = true};
    if (count('\t') > count(',')) return {.separator = '\t', .decimal_comma = false};
    return {};
}

// Decides by the first non-missing value of each column whether it holds numbers.
class TableReader {
  public:
    TableReader(std::string_view text, const std::string& name) : name_(name), lines_(text) {
        if (text.starts_with("\xEF\xBB\xBF")) lines_ = LineCutter(text.substr(3));
        read_head();
        judge_columns(text);
    }

    DataTable read() {
        auto values = std::make_shared<std::vector<float>>();
        for (std::optional<std::string_view> line = first_; line; line = lines_.next())
            read_row(*line, *values);
        if (values->empty()) throw problem("no rows of numbers", "a header line and rows", 0);
        DataTable table{.name = name_, .ignored_columns = ignored_};
        for (std::size_t c : used_) table.columns.push_back(names_[c]);
        table.rows = static_cast<std::int64_t>(values->size() / used_.size());
        fill_gaps(table, *values);
        table.data = values->data();
        table.memory = values;
        return table;
    }

  private:
    [[nodiscard]] UserError problem(const std::string& found, const std::string& expected,
                                    int line) const {
        return UserError({.where = {name_, line}, .found = found, .expected = expected, .fix = ""});
    }

    void read_head() {
        std::optional<std::string_view> line = lines_.next();
        if (!line) throw problem("an empty table", "a header line and rows", 0);
        format_ = sniff(*line);
        cut(*line, format_.separator, cells_);
        bool all_numbers = std::ranges::all_of(cells_, [&](std::string_view cell) {
            return is_missing(cell) || number_of(cell, format_);
        });
        for (std::size_t c = 0; c < cells_.size(); ++c)
            names_.push_back(all_numbers ? std::to_string(c) : std::string(cells_[c]));
        has_head_ = !all_numbers;
        first_ = all_numbers ? line : lines_.next();
    }

    void judge_columns(std::string_view text) {
        std::vector<int> kind(names_.size(), 0);  // 0: not known yet, 1: numbers, 2: text
        LineCutter ahead(text.starts_with("\xEF\xBB\xBF") ? text.substr(3) : text);
        if (has_head_) (void)ahead.next();
        std::size_t unknown = names_.size();
        while (unknown > 0) {
            std::optional<std::string_view> line = ahead.next();
            if (!line) break;
            cut(*line, format_.separator, cells_);
            for (std::size_t c = 0; c < std::min(cells_.size(), kind.size()); ++c) {
                if (kind[c] != 0 || is_missing(cells_[c])) continue;
                kind[c] = number_of(cells_[c], format_) ? 1 : 2;
                --unknown;
            }
        }
        for (std::size_t c = 0; c < kind.size(); ++c) {
            if (kind[c] == 1)
                used_.push_back(c);
            else if (!names_[c].empty())  // a separator at the line's end makes an unnamed one
                ignored_.push_back(names_[c]);
        }
        if (used_.empty())
            throw problem("no column of numbers", "a header line and rows of numbers", 0);
    }

    void read_row(std::string_view line, std::vector<float>& values) {
        cut(line, format_.separator, cells_);
        if (cells_.size() != names_.size())
            throw problem(fmt::format("{} cells", cells_.size()),
                          fmt::format("{}, as in the first line", names_.size()), lines_.number());
        for (std::size_t c : used_) {
            std::optional<float> value = number_of(cells_[c], format_);
            if (!value && !is_missing(cells_[c]))
                throw problem(fmt::format("{} in column {}", in_quotes(cells_[c]),
                                          in_quotes(std::string_view(names_[c]))),
                              "a number, or nothing where it is missing", lines_.number());
            values.push_back(value.value_or(std::numeric_limits<float>::quiet_NaN()));
        }
    }

    static void fill_gaps(DataTable& table, std::vector<float>& values) {
        auto width = static_cast<std::size_t>(table.width());
        for (std::size_t c = 0; c < width; ++c) {
            float last = 0;  // a gap at the start takes the first value that is there
            for (std::size_t at = c; at < values.size(); at += width) {
                if (std::isnan(values[at])) continue;
                last = values[at];
                break;
            }
            for (std::size_t at = c; at < values.size(); at += width) {
                if (std::isnan(values[at])) {
                    values[at] = last;
                    ++table.filled_cells;
                }
                last = values[at];
            }
        }
    }

    const std::string& name_;
    LineCutter lines_;
    CsvFormat format_;
    bool has_head_ = false;
    std::optional<std::string_view> first_;  // of data
    std::vector<std::string> names_, ignored_;
    std::vector<std::size_t> used_;
    std::vector<std::string_view> cells_;
};

}  // namespace

DataTable parse_table(std::string_view text, const std::string& name) {
    return TableReader(text, name).read();
}

}  // namespace saturate
