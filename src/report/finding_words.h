// SPDX-License-Identifier: Apache-2.0
// Findings in the words of a page's language. The English ones are the table of diagnosis/; the
// Chinese ones are here, by id, and a test asks for every one of them.
#pragma once

#include <string>
#include <string_view>

#include "diagnosis/finding.h"

namespace saturate {

struct FindingWords {
    std::string name;
    std::string seen;  // how much of the time; empty where the evidence says it
    std::string fix;
    std::string evidence;  // one sentence with numbers, which is English in every language
};

// `language` is "en" or "zh".
[[nodiscard]] FindingWords words_of(const Finding& finding, std::string_view language);

}  // namespace saturate
