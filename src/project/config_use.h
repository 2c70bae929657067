// SPDX-License-Identifier: Apache-2.0
// Which programs of a project read a configuration file, and which of its keys: those that are
// there and have no effect, and those that would have one if they were there. For optimize and
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
        std::vector<FactWithoutEffect> without_effect;  // of the file
        std::vector<std::string> frameworks;
    };
    std::vector<Program> programs;  // that train, and read the file
    std::vector<std::string> limits;
    std::string problem;  // why the command is no program that can be read; empty: it is

    [[nodiscard]] bool is_known() const { return !programs.empty(); }
    // The first place that reads the key; null: none is seen.
    [[nodiscard]] const FactKey* reads(const KeyPath& path) const;
    // What none of the programs has a use for.
    [[nodiscard]] std::vector<FactWithoutEffect> without_effect() const;
    [[nodiscard]] bool uses(std::string_view framework) const;
};

// The git root above the file, or the folder that we run in where the file is below it (and it is
// not a home folder or the like), or its own.
[[nodiscard]] std::filesystem::path project_folder(const std::filesystem::path& file);

// Whether there are Python files in the folder or not far below it.
[[nodiscard]] bool has_python(const std::filesystem::path& folder);

// Reads the project for the file. With a command, that program alone; {config} in it stands for the
// file. Where there is no Python to read with, nothing is known.
[[nodiscard]] ConfigUse read_config_use(const std::filesystem::path& file,
                                        std::vector<std::string> command);

// The dialect of a file whose readers are known: a framework's only where they import it. Null: as
// the file looks.
[[nodiscard]] const Dialect* dialect_by_use(const Document& document, const ConfigUse& use);

// Takes out of the advice what the programs would not see: changes of keys without effect, and new
// keys of another type than the program expects. Both are told instead.
void keep_what_is_read(const Document& document, const ConfigUse& use, Advice& advice);

}  // namespace saturate
