// SPDX-License-Identifier: Apache-2.0
// What write_file_whole (file.h) does, with a choice; output_file.h has the rule for users' files.
#pragma once

#include <filesystem>
#include <string_view>

namespace saturate {

struct WriteRule {
    unsigned mode = 0666;  // of a new file, before umask
    bool replaces = true;  // else a file that is there is a UserError
};

void write_file(const std::filesystem::path& path, std::string_view content, const WriteRule& rule);

// Where a link leads to in the end, whether that is there or not; a path that is no link is itself.
[[nodiscard]] std::filesystem::path followed(const std::filesystem::path& path);

}  // namespace saturate
