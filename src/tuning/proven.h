// SPDX-License-Identifier: Apache-2.0
// What of a search's answer was proven: that alone may be written into a file without being asked
// for more. Pure.
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

// The proof is of all settings together, so that it covers all of them or none. What lies outside
// of it (intervals between pauses, which are arithmetic) is always in the rest.
[[nodiscard]] ProvenSettings proven_settings(const TuneRequest& request, const TuneAnswer& answer);

}  // namespace saturate
