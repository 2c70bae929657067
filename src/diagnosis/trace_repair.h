// SPDX-License-Identifier: Apache-2.0
// Finds and repairs events in text that a JSON parser rejects. PyTorch does not escape names, so
// raw control characters and unescaped quotes (pytorch#146900) would make a strict parser lose the
// whole file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace saturate {

// Returns the position of the comma before the next event at or after `from`, recognised by "}, {"
// and a usual first key, or nullopt.
[[nodiscard]] std::optional<std::size_t> next_boundary(std::string_view text, std::size_t from);
// Returns the last of these positions.
[[nodiscard]] std::optional<std::size_t> last_boundary(std::string_view text);

// Returns the end (one past the bracket) of the object or array that starts at `from`, ignoring
// brackets in strings, or nullopt if it does not end in `text`.
[[nodiscard]] std::optional<std::size_t> value_end(std::string_view text, std::size_t from);

// Returns the event with control characters, stray quotes, bad escapes and broken UTF-8 repaired.
[[nodiscard]] std::string repair_event(std::string_view broken);

}  // namespace saturate
