// SPDX-License-Identifier: Apache-2.0
#include "pipeline/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "pipeline/mapped_file.h"

namespace saturate {

std::int64_t DataTable::column(std::string_view name_or_number) const {
    if (name_or_number.empty()) return width() - 1;
    auto named = std::ranges::find(columns, name_or_number);
    if (named != columns.end()) return named - columns.begin();
    if (std::optional<std::int64_t> number = parse_integer(name_or_number)) {
        if (*number >= 0 && *number < width()) return *number;
    }
    std::optional<std::string> near = closest(name_or_number, columns);
    throw UserError({.where = {name},
                     .found = fmt::format("no column {}", quoted(name_or_number)),
                     .expected = join(columns, ", "),
                     .fix = near ? *near : ""});
}

std::shared_ptr<const DataTable> read_table(const std::filesystem::path& path) {
    MappedFile file(path, "a CSV table");
    return std::make_shared<DataTable>(parse_table(file.text(), path.string()));
}

}  // namespace saturate
