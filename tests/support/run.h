// SPDX-License-Identifier: Apache-2.0
// Runs a program as a user would and captures its output.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace saturate {

struct Ran {
    int status = -1;  // exit code, or 128 + signal
    std::string out;
    std::string err;
};

struct RunWhere {
    std::filesystem::path folder = {};                    // empty: the current folder
    std::map<std::string, std::string> environment = {};  // added to ours; "" removes a variable
    std::string input = {};
};

Ran run(const std::vector<std::string>& command, const RunWhere& where = {});

// Returns the Python that tests/support/python_torch of this source tree finds, or "".
std::string python_with_torch(const std::string& source_tree);

// A folder that exists for one test and is deleted afterwards.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    // Writes a file below the folder and returns its path.
    std::filesystem::path file(const std::string& name, const std::string& content) const;

  private:
    std::filesystem::path path_;
};

}  // namespace saturate
