// SPDX-License-Identifier: Apache-2.0
// A table of numbers, rows by time: a CSV file read into memory, or a 2-D float32 array mapped from
// an npy file. What windows are cut from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saturate {

struct DataTable {
    std::string name;  // the file's path
    std::vector<std::string> columns;
    std::int64_t rows = 0;
    const float* data = nullptr;               // row by row
    std::shared_ptr<const void> memory;        // what `data` lies in
    std::int64_t filled_cells = 0;             // were missing: took the value of the row before
    std::vector<std::string> ignored_columns;  // text, dates

    [[nodiscard]] std::int64_t width() const { return static_cast<std::int64_t>(columns.size()); }
    [[nodiscard]] const float* row(std::int64_t index) const { return data + index * width(); }
    // By its name, or by its number from 0; empty: the last. Throws UserError.
    [[nodiscard]] std::int64_t column(std::string_view name_or_number) const;
    // What was filled in and what was left out, a line each, for the user.
    [[nodiscard]] std::vector<std::string> notes() const;
};

// By the file's content: npy or CSV. Throws UserError with the line.
[[nodiscard]] std::shared_ptr<const DataTable> read_table(const std::filesystem::path& path);

// Separators , ; and tab; with ; a comma may be the decimal point. The first line names the columns
// unless it holds numbers only. Columns that begin with text are left out. Missing: nothing, NA,
// NaN, null, ?.
[[nodiscard]] DataTable parse_table(std::string_view text, const std::string& name);

}  // namespace saturate
