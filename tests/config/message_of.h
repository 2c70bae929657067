// SPDX-License-Identifier: Apache-2.0
// What a user is told about a text that is no configuration.
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
