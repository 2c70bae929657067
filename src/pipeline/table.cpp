// SPDX-License-Identifier: Apache-2.0
#include "pipeline/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "pipeline/array_source.h"
#include "pipeline/mapped_file.h"
#include "pipeline/npy.h"

namespace saturate {

namespace {

DataTable table_of_array(NpyArray array, const std::string& place) {
    if (array.shape.size() != 2 || array.shape[0] == 0 || array.shape[1] == 0)
        throw UserError(
            {.where = {place},
             .found = fmt::format("an array of {} dimensions, {} numbers", array.shape.size(),
                                  array.data.size() / static_cast<std::size_t>(array.type.bytes)),
             .expected = "a table: rows and columns",
             .fix = ""});
    DataTable table{.name = place, .rows = array.shape[0]};
    for (std::int64_t c = 0; c < array.shape[1]; ++c) table.columns.push_back(std::to_string(c));
    bool aligned = reinterpret_cast<std::uintptr_t>(array.data.data()) % alignof(float) == 0;
    if (array.type == NumberType{'f', 4} && aligned) {
        table.data = reinterpret_cast<const float*>(array.data.data());
        table.memory = std::move(array.memory);
        return table;
    }
    auto count = static_cast<std::size_t>(array.shape[0] * array.shape[1]);
    if (array.type.kind != 'f')
        throw UserError({.where = {place},
                         .found = "an array of whole numbers",
                         .expected = "a table of floats",
                         .fix = "array.astype('<f4')"});
    auto values = std::make_shared<std::vector<float>>(count);
    convert(array.type, array.data.data(), count, reinterpret_cast<std::byte*>(values->data()));
    table.data = values->data();
    table.memory = values;
    return table;
}

}  // namespace

std::int64_t DataTable::column(std::string_view name_or_number) const {
    if (name_or_number.empty()) return width() - 1;
    auto named = std::ranges::find(columns, name_or_number);
    if (named != columns.end()) return named - columns.begin();
    if (std::optional<std::int64_t> number = parse_integer(name_or_number)) {
        if (*number >= 0 && *number < width()) return *number;
    }
    std::optional<std::string> near = closest(name_or_number, columns);
    throw UserError({.where = {name},
                     .found = fmt::format("no column {}", in_quotes(name_or_number)),
                     .expected = join(columns, ", "),
                     .fix = near ? *near : ""});
}

std::vector<std::string> DataTable::notes() const {
    std::vector<std::string> out;
    if (filled_cells > 0)
        out.push_back(fmt::format("{}: {} missing {} filled with the value of the row before", name,
                                  filled_cells, filled_cells == 1 ? "cell was" : "cells were"));
    if (!ignored_columns.empty())
        out.push_back(
            fmt::format("{}: not numbers, so left out: {}", name, join(ignored_columns, ", ")));
    return out;
}

std::shared_ptr<const DataTable> read_table(const std::filesystem::path& path) {
    auto file = std::make_shared<MappedFile>(path, "a table: CSV or npy");
    std::string place = path.string();
    if (file->text().starts_with("\x93NUMPY"))
        return std::make_shared<DataTable>(
            table_of_array(parse_npy(file->bytes(), place, file), place));
    return std::make_shared<DataTable>(parse_table(file->text(), place));
}

}  // namespace saturate
