// SPDX-License-Identifier: Apache-2.0
// Reads the user's project with the command's own Python, without importing or running any of it.
// The reader's files (python/_saturate_reader) are part of the binary and are written to the user's
// cache.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "project/facts.h"
#include "project/source_edit.h"

namespace saturate {

struct ProjectQuestion {
    std::vector<std::string> command;
    std::vector<std::string> configs;
    std::filesystem::path folder = ".";  // the folder that the command runs in
};

class ProjectReader {
  public:
    // Finds the interpreter and writes out the reader's files. Throws MachineError if there is no
    // Python.
    explicit ProjectReader(ProjectQuestion question);
    ~ProjectReader();
    ProjectReader(const ProjectReader&) = delete;
    ProjectReader& operator=(const ProjectReader&) = delete;

    // Throws UserError (the command names no program) or MachineError (the reader did not finish).
    [[nodiscard]] ProjectFacts read();
    // Returns the programs below the folder that train and read the file. Adds to `limits` what was
    // not looked at.
    [[nodiscard]] std::vector<ConfigReaderFacts> readers_of(const std::filesystem::path& config,
                                                            std::vector<std::string>& limits);
    // Returns the programs below the folder that train, the most likely one first.
    [[nodiscard]] std::vector<std::string> programs();
    [[nodiscard]] const std::string& interpreter() const { return interpreter_; }

    struct Check {
        std::string before;  // the whole file
        std::vector<SourceEdit> edits;
        std::string after;
        std::string sha256;  // of the file as read for the facts; empty: not compared
    };
    // Checks that each edited file differs by exactly these edits. Returns for each check why it
    // does not; empty: it does.
    [[nodiscard]] std::vector<std::string> verify(std::span<const Check> checks);

  private:
    [[nodiscard]] Json ask(const std::vector<std::string>& words, const std::string& input,
                           const char* what);
    ProjectQuestion question_;
    std::string interpreter_;
    std::filesystem::path scratch_;              // removed by the destructor
    std::filesystem::path programs_;             // the reader's files
    std::map<std::string, std::string> proven_;  // answers of verify(), by its question
};

}  // namespace saturate
