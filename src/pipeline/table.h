// SPDX-License-Identifier: Apache-2.0
// A table of numbers with rows in time order: a CSV file read into memory, or a 2-D float32 array
// mapped from an npy file. Windows are cut from it.
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
    const float* data = nullptr;               // row-major
    std::shared_ptr<const void> memory;        // owner of the memory behind `data`
    std::int64_t filled_cells = 0;             // missing cells, filled from the row before
    std::vector<std::string> ignored_columns;  // text, dates

    [[nodiscard]] std::int64_t width() const { return static_cast<std::int64_t>(columns.size()); }
    [[nodiscard]] const float* row(std::int64_t index) const { return data + index * width(); }
    // Finds a column by name, or by number from 0; empty: the last column. Throws UserError.
    [[nodiscard]] std::int64_t column(std::string_view name_or_number) const;
    // Lines for the user about filled cells and ignored columns.
    [[nodiscard]] std::vector<std::string> notes() const;
};

// Reads npy or CSV, told apart by content. Throws UserError with the line.
[[nodiscard]] std::shared_ptr<const DataTable> read_table(const std::filesystem::path& path);

// Separators are , ; and tab; with ; a comma may be the decimal point. The first line names the
// columns unless it has only numbers. Columns whose first value is text are left out. Missing
// values: an empty cell, NA, NaN, null, ?.
[[nodiscard]] DataTable parse_table(std::string_view text, const std::string& name);

}  // namespace saturate
