// SPDX-License-Identifier: Apache-2.0
// Translates lines that consist of several sentences: "error: job.yaml:3: batch_size is 0",
// columns, notes in parentheses. Used only by words.cpp.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace saturate {

struct Clause {
    std::string translation;
    std::size_t weight = 0;  // number of letters that the table covers
};

// Splits the line at punctuation and columns so that `look` knows as much of it as possible, and
// joins the translations. Columns stay aligned.
[[nodiscard]] Clause joined_clauses(
    std::string_view line, const std::function<std::optional<Clause>(std::string_view)>& look);

// Recognises the lines of a patch, which programs read, so that they stay unchanged. Call holds()
// for each line in order; it returns true for a line of a patch.
class PatchLines {
  public:
    bool holds(std::string_view line, std::string_view next);
    [[nodiscard]] std::size_t indent() const { return indent_; }

  private:
    bool inside_ = false;
    std::size_t indent_ = 0;
};

}  // namespace saturate
