// SPDX-License-Identifier: Apache-2.0
// Finds the programs of a project that read a configuration file, and the keys they read: keys in
// the file without effect, and keys not in the file that would have an effect. Used by optimize and
// diagnose.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/dialect.h"
#include "project/facts.h"
#include "remedies/advise.h"

namespace saturate {

struct ConfigUse {
    struct Program {
        std::string script;
        std::vector<FactKey> keys;
        std::vector<FactWithoutEffect> without_effect;  // keys of the file
        std::vector<std::string> frameworks;
    };
    std::vector<Program> programs;  // programs that train and read the file
    std::vector<std::string> limits;
    std::string problem;  // why the command's program cannot be read; empty: it can

    [[nodiscard]] bool is_known() const { return !programs.empty(); }
    // The first place that reads the key, or null if none is seen.
    [[nodiscard]] const FactKey* reads(const KeyPath& path) const;
    // Keys of the file that no program uses.
    [[nodiscard]] std::vector<FactWithoutEffect> without_effect() const;
    [[nodiscard]] bool uses(std::string_view framework) const;
};

// The git root above the file. Else the current folder, if the file is below it and it is not a
// home folder or similar. Else the file's own folder.
[[nodiscard]] std::filesystem::path project_folder(const std::filesystem::path& file);

// True if the folder has Python files, or has them a few levels below.
[[nodiscard]] bool has_python(const std::filesystem::path& folder);

// Reads the project around the file. With a command, reads only that program; {config} in the
// command stands for the file. Without a Python to read with, nothing is known.
[[nodiscard]] ConfigUse read_config_use(const std::filesystem::path& file,
                                        std::vector<std::string> command);

// The dialect of a file whose readers are known. A framework's dialect counts only if a reader
// imports the framework. Null: go by the file alone.
[[nodiscard]] const Dialect* dialect_by_use(const Document& document, const ConfigUse& use);

// Removes advice that the programs would not see: changes of keys without effect, and new keys with
// another type than the program expects. Adds a note for each instead.
void keep_what_is_read(const Document& document, const ConfigUse& use, Advice& advice);

}  // namespace saturate
