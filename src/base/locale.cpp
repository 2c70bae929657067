// SPDX-License-Identifier: Apache-2.0
#include "base/locale.h"

#include <cstdlib>

namespace saturate {

std::string message_locale() {
    for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"}) {
        const char* value = std::getenv(name);
        if (value && *value) return value;
    }
    return "";
}

}  // namespace saturate
