// SPDX-License-Identifier: Apache-2.0
// Files read whole with a limit and written whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace saturate {

// Throws UserError for what is missing, a directory, unreadable, or larger than the limit; `what`
// names the kind of file in the message ("a configuration").
[[nodiscard]] std::string read_file(const std::filesystem::path& path, std::uint64_t limit_bytes,
                                    std::string_view what);

// Small files of the kernel (/proc, /sys); empty when absent or unreadable.
[[nodiscard]] std::string read_if_there(const std::filesystem::path& path);
// No more than its first bytes: /proc/cpuinfo of a large machine takes longer to read than a verb
// to run.
[[nodiscard]] std::string read_start_if_there(const std::filesystem::path& path,
                                              std::size_t limit_bytes);

// Writes a neighbour, syncs it, renames it over `path`: a reader sees the old file or the new one.
// Keeps the permissions of a file that is replaced. Throws UserError (no such folder, no
// permission) or MachineError (disk full); the neighbour is removed then.
void write_file_whole(const std::filesystem::path& path, std::string_view content);

}  // namespace saturate
