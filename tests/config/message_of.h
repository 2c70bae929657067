// SPDX-License-Identifier: Apache-2.0
// Returns the error message for a text that is not a valid configuration.
#pragma once

#include <string>

#include "base/error.h"
#include "config/document.h"

namespace saturate {

inline std::string message_of(const std::string& text, const std::string& file = "job.yaml") {
    try {
        (void)Document::parse(text, file);
    } catch (const UserError& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace saturate
