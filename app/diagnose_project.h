// SPDX-License-Identifier: Apache-2.0
// `diagnose` of a program or a folder of sources, from reading alone, like `fix --dry-run`.
#pragma once

#include <filesystem>
#include <vector>

#include "arguments.h"
#include "config/document.h"
#include "diagnosis/finding.h"
#include "remedies/facts.h"
#include "telemetry/record_reader.h"

namespace saturate {

// True for a Python file, or a folder with Python files (not a record, and without traces).
[[nodiscard]] bool is_project(const std::filesystem::path& path);

// Prints the answer and returns the exit code.
int diagnose_project(const Arguments& arguments, const std::filesystem::path& path,
                     const Facts& machine);

// Returns findings for keys of a configuration that no program near the file reads.
[[nodiscard]] std::vector<Finding> unread_keys(const Document& document);

// Returns findings for the configuration that the command of a run names: keys that nothing reads,
// and settings that were not in force in the record. Call it in the folder where the command ran.
// Empty if the command names no existing configuration.
[[nodiscard]] std::vector<Finding> settings_without_effect(const RunRecord& record);

}  // namespace saturate
