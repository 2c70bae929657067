// SPDX-License-Identifier: Apache-2.0
// Edits a configuration and leaves every other byte unchanged. Used by optimize, tune and diagnose.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "config/document.h"

namespace saturate {

struct Edit {
    KeyPath path;
    std::string value;   // as written in the file: 8, true, bf16, "3.0e-4"
    std::string reason;  // becomes a trailing comment if the format has comments; empty: none
    // For a new key: the key of the same map after which it goes; empty: the end of the map. The
    // map must exist, unless the path has only one key.
    std::string behind = {};
    bool remove = false;  // remove the key
    bool operator==(const Edit&) const = default;
};

// Returns the text with all edits made. Parses the result and compares it: exactly the named keys
// must differ. Throws UserError that names an edit that cannot be exact and the reason (merge keys,
// an alias, a flow map over several lines).
[[nodiscard]] std::string apply_edits(const Document& document, std::span<const Edit> edits);

// Why this edit alone cannot be made exactly, or nothing. For callers that skip such keys and
// report them.
[[nodiscard]] std::optional<Problem> check_edit(const Document& document, const Edit& edit);

}  // namespace saturate
