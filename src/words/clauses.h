// SPDX-License-Identifier: Apache-2.0
// Lines that are put together of several sentences: "error: job.yaml:3: batch_size is 0", columns,
// notes in parentheses. Used by words.cpp alone.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace saturate {

struct Clause {
    std::string translation;
    std::size_t weight = 0;  // letters that the table knows
};

// Cuts the line at its punctuation and columns so that as much of it as can be is a sentence that
// `look` knows, and puts the translations together; columns stay below each other.
[[nodiscard]] Clause joined_clauses(
    std::string_view line, const std::function<std::optional<Clause>(std::string_view)>& look);

// Tells the lines of a patch from text: they are for programs to read.
class PatchLines {
  public:
    bool holds(std::string_view line, std::string_view next);

  private:
    bool inside_ = false;
    std::size_t indent_ = 0;
};

}  // namespace saturate
