// SPDX-License-Identifier: Apache-2.0
// A file that the build made part of the binary (cmake/embed.cmake).
#pragma once

#include <string_view>

namespace saturate {

struct EmbeddedFile {
    std::string_view name;  // below the folder that was embedded
    std::string_view text;
};

}  // namespace saturate
