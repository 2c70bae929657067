// SPDX-License-Identifier: Apache-2.0
// Reads whole files with a limit, writes files completely or not at all, makes temporary folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace saturate {

// Throws UserError if the file is missing, a directory, unreadable, or larger than the limit.
// `what` names the kind of file in the message ("a configuration").
[[nodiscard]] std::string read_file(const std::filesystem::path& path, std::uint64_t limit_bytes,
                                    std::string_view what);

// Reads a small file, such as one of /proc or /sys. Returns "" if it is absent, unreadable or
// larger than 1 MiB.
[[nodiscard]] std::string read_if_there(const std::filesystem::path& path);
// Reads only the first bytes: on a large machine, reading all of /proc/cpuinfo takes longer than a
// whole verb.
[[nodiscard]] std::string read_start_if_there(const std::filesystem::path& path,
                                              std::size_t limit_bytes);

// Reads only the last bytes, as of a log. Returns "" if the file is absent or unreadable.
[[nodiscard]] std::string read_end_if_there(const std::filesystem::path& path,
                                            std::size_t limit_bytes);

// Writes a temporary file next to `path`, syncs it and renames it to `path`: a reader sees the old
// file or the new one. A replaced file keeps its permissions. Throws UserError (no such folder, no
// permission) or MachineError (disk full) and removes the temporary file.
void write_file_whole(const std::filesystem::path& path, std::string_view content);

// Makes a folder "<parent>/<name>......" that only this user can read. Throws MachineError.
[[nodiscard]] std::filesystem::path make_temporary_folder(const std::filesystem::path& parent,
                                                          std::string_view name);

}  // namespace saturate
