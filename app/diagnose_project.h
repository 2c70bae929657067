// SPDX-License-Identifier: Apache-2.0
// diagnose of a program or a folder of sources: what reading alone tells, as `fix --dry-run` reads.
#pragma once

#include <filesystem>
#include <vector>

#include "arguments.h"
#include "config/document.h"
#include "diagnosis/finding.h"
#include "remedies/facts.h"
#include "telemetry/record_reader.h"

namespace saturate {

// A Python file, or a folder with Python files in it (not a record, and without traces).
[[nodiscard]] bool is_project(const std::filesystem::path& path);

// Prints the answer; the exit code.
int diagnose_project(const Arguments& arguments, const std::filesystem::path& path,
                     const Facts& machine);

// Keys of a configuration that the programs around it have no use for.
[[nodiscard]] std::vector<Finding> unread_keys(const Document& document);

// Of the configuration that a watched command names, seen from the folder that it ran in: keys that
// nothing reads, and those that the record shows not to be in force. Empty where it names none that
// is there.
[[nodiscard]] std::vector<Finding> settings_without_effect(const RunRecord& record);

}  // namespace saturate
