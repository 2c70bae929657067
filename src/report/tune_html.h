// SPDX-License-Identifier: Apache-2.0
// The HTML page of a search (tune, optimize --benchmark, demo of a job): the changes tried and
// kept, a chart of the proof, and the settings. Self-contained; readable without JavaScript.
#pragma once

#include <cstdint>
#include <string>

#include "tuning/conductor.h"
#include "words/words.h"

namespace saturate {

struct TunePage {
    const TuneRequest& request;
    const TuneAnswer& answer;
    bool is_proven = false;
    std::string why = {};      // why it is not proven, as a clause
    std::string machine = {};  // "AMD EPYC 9654, 16 cores"
    std::int64_t began_wall_ns = 0;
    Language language = Language::english;
};

[[nodiscard]] std::string tune_html(const TunePage& page);

}  // namespace saturate
