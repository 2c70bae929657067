// SPDX-License-Identifier: Apache-2.0
// The one rule for every file that a verb writes where the user says: never over an input, never
// over a file that is there unless the user insists (--force), whole or not at all, as private as
// what it was made from, and through a link into the file that it points to.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace saturate {

struct OutputRule {
    std::vector<std::filesystem::path> inputs;  // files, or folders with all that is in them
    bool force = false;
};

class OutputFile {
  public:
    // Checks before any work is done. Throws UserError: the output is an input, under whatever
    // name; it is there, and force is not given; it is a folder. "-" is standard output.
    OutputFile(std::filesystem::path path, const OutputRule& rule);

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] bool is_stdout() const { return path_ == "-"; }
    // Not for standard output, which only app/ prints to. Throws as write_file_whole does, and
    // UserError when somebody else made the file meanwhile.
    void write(std::string_view content) const;

  private:
    std::filesystem::path path_;
    unsigned mode_ = 0666;
    bool force_;
};

// A name for a folder of results: "-" is refused, as a folder cannot be standard output.
[[nodiscard]] std::filesystem::path output_folder(const std::filesystem::path& path);

// Keeps what a file holds, before it is replaced, beside it in the first of name.bak, name.bak.1,
// ... that is free, with the same permissions; gives that name.
std::filesystem::path keep_backup(const std::filesystem::path& file, std::string_view content);

}  // namespace saturate
