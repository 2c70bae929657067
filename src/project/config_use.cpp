// SPDX-License-Identifier: Apache-2.0
#include "project/config_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "config/framework.h"
#include "config/scalar.h"
#include "project/project_reader.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

bool is_imported(const Dialect& dialect, const ConfigUse& use) {
    return std::ranges::any_of(frameworks_of(dialect),
                               [&](const std::string& framework) { return use.uses(framework); });
}

std::size_t keys_explained(const Document& document, const Dialect& dialect, bool ignore_case) {
    KeyIndex index(document, ignore_case);
    return DialectKeys(index, dialect).explained().size();
}

bool is_type(const std::string& text, const std::string& type, Format format) {
    if (type.empty()) return true;
    bool is_quoted = text.starts_with('"');
    ScalarType is = scalar_type(text, is_quoted, format);
    if (type == "bool") return is == ScalarType::boolean;
    if (type == "int") return is == ScalarType::whole;
    if (type == "float") return is == ScalarType::number || is == ScalarType::whole;
    return type == "str" && is == ScalarType::word;
}

bool trains(const ProjectFacts& facts) {
    return !facts.loops.empty() || std::ranges::any_of(facts.calls, [](const FactCall& call) {
        return call.kind == "trainer" || call.kind == "arguments" || call.kind == "engine";
    });
}

ConfigUse of_command(const fs::path& file, std::vector<std::string> command) {
    constexpr std::string_view kPlace = "{config}";
    std::string name = file.string();
    for (std::string& word : command) {
        for (std::size_t at = 0; (at = word.find(kPlace, at)) != std::string::npos;
             at += name.size())
            word.replace(at, kPlace.size(), name);
    }
    ProjectFacts facts = ProjectReader({command, {file.string()}, "."}).read();
    if (!facts.command_problem.empty()) return {.problem = facts.command_problem};
    ConfigUse out{.limits = facts.limits};
    for (const FactConfig& config : facts.configs) {
        std::error_code ignored;
        if (!fs::equivalent(config.file, file, ignored) || !trains(facts)) continue;
        ConfigUse::Program program{
            .script = facts.script, .keys = config.keys, .frameworks = facts.frameworks};
        for (const FactWithoutEffect& one : facts.without_effect)
            if (one.file == config.file) program.without_effect.push_back(one);
        out.programs.push_back(std::move(program));
    }
    return out;
}

constexpr int kDepth = 3;  // search sources at most this many folders down

bool is_below(const fs::path& path, const fs::path& folder) {
    return std::ranges::mismatch(folder, path).in1 == folder.end();
}

// A home folder, a folder above it, / and the folder of temporary files hold many projects.
bool is_nobodys(const fs::path& folder) {
    std::error_code error;
    const char* home = std::getenv("HOME");
    return !folder.has_relative_path() || folder == fs::temp_directory_path(error) ||
           (home && is_below(fs::weakly_canonical(home, error), folder));
}

}  // namespace

bool has_python(const fs::path& folder) {
    std::error_code error;
    fs::recursive_directory_iterator all(folder, fs::directory_options::skip_permission_denied,
                                         error);
    for (; !error && all != fs::end(all); all.increment(error)) {
        std::string name = all->path().filename().string();
        if (all->is_directory(error) && (all.depth() >= kDepth || name.starts_with('.')))
            all.disable_recursion_pending();
        if (name.ends_with(".py") && all->is_regular_file(error)) return true;
    }
    return false;
}

const FactKey* ConfigUse::reads(const KeyPath& path) const {
    for (const Program& program : programs)
        for (const FactKey& key : program.keys)
            if (key.path == path) return &key;
    return nullptr;
}

std::vector<FactWithoutEffect> ConfigUse::without_effect() const {
    std::vector<FactWithoutEffect> out;
    if (programs.empty()) return out;
    for (const FactWithoutEffect& one : programs.front().without_effect) {
        bool is_everywhere = std::ranges::all_of(programs, [&](const Program& program) {
            return std::ranges::any_of(program.without_effect, [&](const FactWithoutEffect& other) {
                return other.line == one.line && other.setting == one.setting;
            });
        });
        if (is_everywhere && one.certainty != Certainty::unknown) out.push_back(one);
    }
    return out;
}

bool ConfigUse::uses(std::string_view framework) const {
    return std::ranges::any_of(programs, [&](const Program& program) {
        return std::ranges::find(program.frameworks, framework) != program.frameworks.end();
    });
}

fs::path project_folder(const fs::path& file) {
    std::error_code error;
    fs::path own = fs::weakly_canonical(file, error).parent_path();
    for (fs::path up = own; !up.empty(); up = up.parent_path()) {
        if (fs::exists(up / ".git", error)) return up;
        if (up == up.root_path()) break;
    }
    fs::path here = fs::current_path(error);
    return !error && is_below(own, here) && !is_nobodys(here) ? here : own;
}

ConfigUse read_config_use(const fs::path& file, std::vector<std::string> command) {
    try {
        if (!command.empty()) return of_command(file, std::move(command));
        fs::path folder = project_folder(file);
        if (!has_python(folder)) return {};
        ConfigUse out;
        ProjectReader reader({{}, {}, folder});
        for (ConfigReaderFacts& program : reader.readers_of(file, out.limits)) {
            out.programs.push_back({program.script, std::move(program.keys),
                                    std::move(program.without_effect),
                                    std::move(program.frameworks)});
        }
        return out;
    } catch (const MachineError& error) {
        return {.problem = error.problems().front().found};
    }
}

const Dialect* dialect_by_use(const Document& document, const ConfigUse& use) {
    if (!use.is_known()) return nullptr;
    const Dialect& looks = recognise_dialect(document);
    const Dialect* plain = find_dialect("plain");
    if (looks.is_ours()) return nullptr;
    if (!looks.is_free() && is_imported(looks, use)) return &looks;
    // A framework's file with few keys passes if the framework explains as many keys as plain does.
    std::size_t most = std::max<std::size_t>(keys_explained(document, *plain, true), 2);
    for (const Dialect& dialect : dialects()) {
        if (dialect.is_free() || !is_imported(dialect, use)) continue;
        if (keys_explained(document, dialect, false) >= most) return &dialect;
    }
    return plain;
}

void keep_what_is_read(const Document& document, const ConfigUse& use, Advice& advice) {
    std::vector<FactWithoutEffect> dead = use.without_effect();
    auto dead_one = [&](int line, const KeyPath& path) -> const FactWithoutEffect* {
        auto found = std::ranges::find_if(dead, [&](const FactWithoutEffect& one) {
            return one.line == line && one.setting.ends_with(path.back());
        });
        return found == dead.end() ? nullptr : &*found;
    };
    std::vector<Change> kept;
    for (Change& change : advice.changes) {
        const Node* node = document.find(change.edit.path);
        int line = node ? node->place.line : 0;
        if (!change.before.empty() && line > 0 && dead_one(line, change.edit.path)) continue;
        const FactKey* key = use.reads(change.edit.path);
        if (change.before.empty() && key && !is_type(change.after, key->type, document.format())) {
            advice.additions.push_back(
                {path_text(change.edit.path), change.after, change.level, change.reason});
            continue;
        }
        kept.push_back(std::move(change));
    }
    advice.changes = std::move(kept);
    for (const FactWithoutEffect& one : dead) {
        std::string what = fmt::format("{} has no effect: {}", one.setting, one.why);
        if (!one.instead.empty()) what += fmt::format(" ({})", one.instead);
        advice.warnings.push_back({Place{document.file(), one.line}, what, ""});
    }
}

}  // namespace saturate
