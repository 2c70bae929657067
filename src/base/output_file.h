// SPDX-License-Identifier: Apache-2.0
// The rule for every file that a verb writes to a path from the user. It never overwrites an input,
// and overwrites other files only with --force. It writes completely or not at all, keeps the file
// as private as its inputs, and writes through a link into its target.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace saturate {

struct OutputRule {
    std::vector<std::filesystem::path> inputs;  // files, or folders with all their content
    bool force = false;
};

class OutputFile {
  public:
    // Checks the path before any work is done. Throws UserError if the output is an input under any
    // name, if it exists and force is not set, or if it is a folder. "-" is standard output.
    OutputFile(std::filesystem::path path, const OutputRule& rule);

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] bool is_stdout() const { return path_ == "-"; }
    // Not for standard output, which only app/ prints to. Throws as write_file_whole does, and
    // UserError if the file was made by somebody else in the meantime.
    void write(std::string_view content) const;

  private:
    std::filesystem::path path_;
    unsigned mode_ = 0666;
    bool force_;
};

// Returns the folder for results. Refuses "-", because a folder cannot be standard output.
[[nodiscard]] std::filesystem::path output_folder(const std::filesystem::path& path);

// Saves the present content of a file before it is replaced, with the same permissions, in the
// first free name of name.bak, name.bak.1, ... next to it. Returns that name.
std::filesystem::path keep_backup(const std::filesystem::path& file, std::string_view content);

}  // namespace saturate
