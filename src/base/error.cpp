// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <fmt/format.h>

namespace saturate {

std::string Place::text() const {
    if (line == 0) return file;
    if (column == 0) return fmt::format("{}:{}", file, line);
    return fmt::format("{}:{}:{}", file, line, column);
}

std::string Problem::text() const {
    std::string place = where.text();
    std::string out = fmt::format("error: {}{}{}", place, place.empty() ? "" : ": ", found);
    if (!expected.empty()) out += "\n  expected: " + expected;
    if (!fix.empty()) out += "\n  fix:      " + fix;
    return out;
}

Failure::Failure(std::vector<Problem> problems) : problems_(std::move(problems)) {
    for (const Problem& problem : problems_) {
        if (!text_.empty()) text_ += '\n';
        text_ += problem.text();
    }
}

Bug::Bug(const char* file, int line, const std::string& why)
    : text_(fmt::format("{}:{}: promise broken: {}", file, line, why)) {}

}  // namespace saturate
