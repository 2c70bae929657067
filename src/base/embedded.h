// SPDX-License-Identifier: Apache-2.0
// A file that the build embeds in the binary (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace saturate {

struct EmbeddedFile {
    std::string_view name;  // relative to the embedded folder
    std::string_view text;
};

}  // namespace saturate
