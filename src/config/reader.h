// SPDX-License-Identifier: Apache-2.0
// The three readers behind Document::parse: text in, tree out, mistakes appended to `problems`.
// When there are any, the tree is not to be used. The text is valid UTF-8 without control
// characters (config/precheck.h sees to that).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/document.h"

namespace saturate {

inline constexpr std::size_t kDeepest = 100;         // lists and maps inside each other
inline constexpr std::size_t kMostValues = 500'000;  // in one file

// `second`: where another document begins.
[[nodiscard]] Node read_yaml(std::string_view text, const std::string& file,
                             std::vector<Problem>& problems, std::optional<Place>& second);
[[nodiscard]] Node read_json(std::string_view text, const std::string& file,
                             std::vector<Problem>& problems);
[[nodiscard]] Node read_toml(std::string_view text, const std::string& file,
                             std::vector<Problem>& problems);

// One problem for each key of the map that was there before.
void report_duplicates(const Node& map, std::vector<Problem>& problems);

[[nodiscard]] Problem too_deep(Place where);
[[nodiscard]] Problem too_many(Place where);

}  // namespace saturate
