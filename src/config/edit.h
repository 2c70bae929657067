// SPDX-License-Identifier: Apache-2.0
// Changes to a configuration that leave every other byte as it was. Used by optimize, tune and
// diagnose.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "config/document.h"

namespace saturate {

struct Edit {
    KeyPath path;
    std::string value;   // as it is to stand in the file: 8, true, bf16, "3.0e-4"
    std::string reason;  // becomes a trailing comment where the format has comments; empty: none
    // For a key that is not there: the key of the same map behind which it is added; empty: at the
    // end of that map. The map itself must be there (or the path have one key).
    std::string behind = {};
    bool remove = false;  // take the key out instead
};

// The text with all edits done. The result is parsed again and compared: exactly the named keys
// differ, or UserError says which edit cannot be exact and why (merge keys, an alias, a flow map
// over several lines).
[[nodiscard]] std::string apply_edits(const Document& document, std::span<const Edit> edits);

// Why this edit alone cannot be done exactly; nothing when it can. For callers that leave such keys
// alone and say so.
[[nodiscard]] std::optional<Problem> check_edit(const Document& document, const Edit& edit);

}  // namespace saturate
