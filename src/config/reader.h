// SPDX-License-Identifier: Apache-2.0
// The three readers behind Document::parse: text in, tree out. They append mistakes to `problems`;
// if there are any, do not use the tree. The text must be valid UTF-8 without control characters
// (config/precheck.h checks it).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/document.h"

namespace saturate {

inline constexpr std::size_t kDeepest = 100;         // nested lists and maps
inline constexpr std::size_t kMostValues = 500'000;  // in one file

struct StopReading {};  // thrown through a reader to stop it; the problem is recorded

// `second`: the start of another document.
[[nodiscard]] Node read_yaml(std::string_view text, const std::string& file,
                             std::vector<Problem>& problems, std::optional<Place>& second);
[[nodiscard]] Node read_json(std::string_view text, const std::string& file,
                             std::vector<Problem>& problems);
[[nodiscard]] Node read_toml(std::string_view text, const std::string& file,
                             std::vector<Problem>& problems);

// Adds one problem for each key that the map has twice.
void report_duplicates(const Node& map, std::vector<Problem>& problems);

[[nodiscard]] Problem too_deep(Place where);
[[nodiscard]] Problem too_many(Place where);

}  // namespace saturate
