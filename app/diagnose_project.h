// SPDX-License-Identifier: Apache-2.0
// diagnose of a program or a folder of sources: what reading alone tells, as `fix --dry-run` reads.
#pragma once

#include <filesystem>
#include <vector>

#include "arguments.h"
#include "config/document.h"
#include "diagnosis/finding.h"
#include "remedies/facts.h"

namespace saturate {

// A Python file, or a folder with Python files in it (not a record, and without traces).
[[nodiscard]] bool is_project(const std::filesystem::path& path);

// Prints the answer; the exit code.
int diagnose_project(const Arguments& arguments, const std::filesystem::path& path,
                     const Facts& machine);

// Keys of a configuration that the programs around it have no use for.
[[nodiscard]] std::vector<Finding> unread_keys(const Document& document);

// The same of the configuration that a watched command names, seen from the folder that it ran in;
// empty where it names none that is there.
[[nodiscard]] std::vector<Finding> unread_keys(const std::vector<std::string>& command);

}  // namespace saturate
