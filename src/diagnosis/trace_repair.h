// SPDX-License-Identifier: Apache-2.0
// Finding events in text that a JSON parser refuses, and mending one. PyTorch writes names as they
// come: raw control characters and unescaped quotes (pytorch#146900) lose the whole file to a
// strict parser.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace saturate {

// Where the next event starts in `text` at or after `from`, seen by "}, {" and a usual first key;
// the position of the comma. Nothing when there is none.
[[nodiscard]] std::optional<std::size_t> next_boundary(std::string_view text, std::size_t from);
// The last such place.
[[nodiscard]] std::optional<std::size_t> last_boundary(std::string_view text);

// The end (one past the brace) of the object or array that starts at `from`, minding strings;
// nothing when it does not end in `text`.
[[nodiscard]] std::optional<std::size_t> value_end(std::string_view text, std::size_t from);

// The event with control characters, stray quotes, bad escapes and broken UTF-8 escaped.
[[nodiscard]] std::string repair_event(std::string_view broken);

}  // namespace saturate
