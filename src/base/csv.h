// SPDX-License-Identifier: Apache-2.0
// Small comma-separated tables (the GPU table, the alias table): a header line, then rows.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace saturate {

using CsvRow = std::map<std::string, std::string, std::less<>>;

// Quotes as in RFC 4180. Throws UserError with `file` and line if a row has a different number of
// cells than the header, or if a quote is never closed.
[[nodiscard]] std::vector<CsvRow> parse_csv(std::string_view text, const std::string& file);

}  // namespace saturate
