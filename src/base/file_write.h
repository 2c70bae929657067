// SPDX-License-Identifier: Apache-2.0
// write_file_whole (file.h) with options. output_file.h has the rule for users' files.
#pragma once

#include <filesystem>
#include <string_view>

namespace saturate {

struct WriteRule {
    unsigned mode = 0666;  // of a new file, before umask
    bool replaces = true;  // false: an existing file is a UserError
};

void write_file(const std::filesystem::path& path, std::string_view content, const WriteRule& rule);

// The final target of a link, whether it exists or not. Returns any other path unchanged.
[[nodiscard]] std::filesystem::path followed(const std::filesystem::path& path);

}  // namespace saturate
