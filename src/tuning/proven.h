// SPDX-License-Identifier: Apache-2.0
// Selects the proven part of a search's answer. Only this part may be written into a file without a
// further request. Pure.
#pragma once

#include <string>
#include <vector>

#include "tuning/conductor.h"

namespace saturate {

struct UnprovenSetting {
    std::string key, value;
    std::string why;  // "not part of the proof: ..."
};

struct ProvenSettings {
    Assignment settings;
    std::vector<UnprovenSetting> rest;  // found by the search, but not proven
    std::string
        why;  // why nothing is proven, in a clause; empty: something is, or nothing was found
};

// The proof is of all settings together, so it covers all of them or none. The intervals between
// pauses are computed and not proven: they are always in `rest`.
[[nodiscard]] ProvenSettings proven_settings(const TuneRequest& request, const TuneAnswer& answer);

}  // namespace saturate
