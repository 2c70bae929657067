// SPDX-License-Identifier: Apache-2.0
#include "diagnose_project.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "diagnosis/diagnosis.h"
#include "exit_code.h"
#include "project/config_use.h"
#include "project/fix_answer.h"
#include "project/fix_patch.h"
#include "project/project_reader.h"
#include "remedies/catalogue.h"
#include "report/fix_text.h"
#include "show.h"

namespace saturate {

namespace {

namespace fs = std::filesystem;

struct FoundProgram {
    fs::path folder;
    std::string script;               // relative to the folder
    std::vector<std::string> others;  // other scripts that train
};

FoundProgram program_of(const fs::path& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
        fs::path here = fs::current_path(), file = fs::weakly_canonical(path, error);
        fs::path below = file.lexically_relative(here);
        bool is_below = !below.empty() && *below.begin() != "..";
        return {is_below ? here : file.parent_path(),
                is_below ? below.string() : file.filename().string(),
                {}};
    }
    std::vector<std::string> found = ProjectReader({{}, {}, path}).programs();
    if (found.empty()) {
        throw UserError({.where = {path.string()},
                         .found = "no training program was found in this folder",
                         .expected = "a Python program with a training loop or a trainer",
                         .fix = "name it: saturate diagnose train.py"});
    }
    return {path, found[0], {found.begin() + 1, found.end()}};
}

}  // namespace

bool is_project(const fs::path& path) {
    std::error_code error;
    if (fs::is_directory(path, error)) return has_python(path);
    return path.extension() == ".py";
}

int diagnose_project(const Arguments& arguments, const fs::path& path, const Facts& machine) {
    std::error_code error;
    if (!fs::exists(path, error)) {
        throw UserError({.where = {path.string()},
                         .found = "no such file",
                         .expected = "a Python program, or a folder with one"});
    }
    FoundProgram program = program_of(path);
    std::vector<std::string> command = {"python3", program.script};
    ProjectReader reader({command, {}, program.folder});
    FixQuestion question{.folder = program.folder, .level = Level::training};
    FixAnswer answer{.facts = reader.read(), .level = question.level};
    if (!answer.facts.command_problem.empty()) {
        throw UserError({.found = answer.facts.command_problem,
                         .expected = "a Python program that can be read"});
    }
    FixMachine fitting{.workers = worker_count(machine),
                       .has_bf16 = !machine.gpu || machine.gpu->has_bf16};
    answer.plan = plan_fixes(answer.facts, fitting, question);
    keep_exact(reader, answer.facts, question, answer.plan);
    if (arguments.has("--json")) {
        fmt::print("{}\n", to_json(answer).pretty());
        return kDone;
    }
    std::string next =
        fmt::format("To try these and get a patch: saturate fix -- {}", join(command, " "));
    if (!program.others.empty())
        next += fmt::format("\nOther training programs here: {}", join(program.others, ", "));
    show(stdout, "{}",
         fix_text(answer, {.colour = wants_coloured_words(stdout),
                           .is_broken = has_broken_lines(stdout),
                           .all = arguments.has("--all"),
                           .next = next}));
    return kDone;
}

static std::vector<Finding> findings_of(const ConfigUse& use, const std::string& file) {
    std::vector<Finding> out;
    for (const FactWithoutEffect& one : use.without_effect()) {
        Finding finding{
            .id = "F32", .count = 1, .confidence = Confidence::high, .sources = {"configuration"}};
        finding.where = Place{file, one.line}.text();
        finding.evidence = fmt::format("{} sets {}: {}", finding.where, one.setting, one.why);
        finding.fix = one.instead.empty() ? fmt::format("remove the key, or make {} read it",
                                                        use.programs.front().script)
                                          : fmt::format("in effect: {}", one.instead);
        out.push_back(finding);
    }
    return out;
}

std::vector<Finding> unread_keys(const Document& document) {
    return findings_of(read_config_use(document.file(), {}), document.file());
}

// Returns the configuration that a command names, if the file exists.
static std::optional<std::string> config_of(const std::vector<std::string>& command) {
    for (std::string_view word : command) {
        if (std::size_t equals = word.find('='); word.starts_with('-') && equals != word.npos)
            word.remove_prefix(equals + 1);
        bool is_config =
            word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".toml");
        std::error_code error;
        if (is_config && fs::is_regular_file(word, error)) return std::string(word);
    }
    return std::nullopt;
}

// True if reading the file already reported this line; its `where` may also have a column.
static bool is_told(const std::vector<Finding>& told, const Finding& finding) {
    return std::ranges::any_of(told, [&](const Finding& one) {
        return (finding.where + ":").starts_with(one.where + ":");
    });
}

std::vector<Finding> settings_without_effect(const RunRecord& record) {
    auto file = config_of(record.info.command);
    if (!file) return {};
    try {
        std::vector<Finding> out = findings_of(read_config_use(*file, record.info.command), *file);
        std::vector<Finding> otherwise;
        settings_in_force(record, Document::read(*file), otherwise);
        for (Finding& finding : otherwise)
            if (!is_told(out, finding)) out.push_back(std::move(finding));
        return out;
    } catch (const UserError&) {
        return {};  // nothing is known about an unreadable command or file
    }
}

}  // namespace saturate
