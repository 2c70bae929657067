// SPDX-License-Identifier: Apache-2.0
#include "optimize_show.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/text_table.h"

namespace saturate {

namespace {

std::vector<std::string> programs_of(const ConfigUse& use) {
    std::vector<std::string> out;
    for (const ConfigUse::Program& program : use.programs) out.push_back(program.script);
    return out;
}

}  // namespace

std::string optimize_text(const OptimizePlan& plan) {
    const auto& [document, settings, facts, target, use, advice] = plan;
    std::string out =
        fmt::format("{} ({}) for {}\n", document.file(), settings.dialect().name, target);
    if (use.is_known()) out += fmt::format("read by {}\n", join(programs_of(use), ", "));
    if (!advice.changes.empty()) {
        TextTable table({"setting", "before", "after", "level", "why, and what to expect"});
        for (const Change& change : advice.changes) {
            table.add({path_text(change.edit.path), or_dash(change.before), or_dash(change.after),
                       std::string(level_name(change.level)), change.reason});
            if (!change.effect.empty()) table.add_below(4, "-> " + change.effect);
        }
        out += "\n" + table.text();
    }
    if (!advice.warnings.empty()) out += "\nProblems in the file:\n";
    for (const Warning& warning : advice.warnings) {
        out += fmt::format("  {}: {}\n", warning.where.text(), warning.what);
        if (!warning.fix.empty()) out += fmt::format("      fix: {}\n", warning.fix);
    }
    if (!advice.additions.empty()) {
        std::vector<std::string> keys;
        for (const Addition& addition : advice.additions)
            keys.push_back(fmt::format("{}: {}", addition.key, addition.value));
        out += fmt::format(
            "\nNot in the file, and not added, because {} {}:\n  {}\n",
            use.is_known() ? "your program does not read" : "no program is known to read",
            keys.size() == 1 ? "it" : "them", join(keys, ", "));
    }
    if (!advice.notes.empty()) out += "\nLeft alone:\n";
    for (const std::string& note : advice.notes) out += fmt::format("  {}\n", note);
    return out + "\n";
}

Json optimize_json(const OptimizePlan& plan, const std::string& output) {
    const auto& [document, settings, facts, target, use, advice] = plan;
    Json changes = Json::array(), warnings = Json::array(), additions = Json::array();
    for (const Addition& addition : advice.additions) {
        additions.add(Json::object({{"key", addition.key},
                                    {"value", addition.value},
                                    {"level", level_name(addition.level)},
                                    {"reason", addition.reason}}));
    }
    for (const Change& change : advice.changes) {
        changes.add(Json::object({{"key", path_text(change.edit.path)},
                                  {"line", change.line > 0 ? Json(change.line) : Json()},
                                  {"before", change.before.empty() ? Json() : Json(change.before)},
                                  {"after", change.edit.remove ? Json() : Json(change.after)},
                                  {"level", level_name(change.level)},
                                  {"reason", change.reason},
                                  {"effect", change.effect}}));
    }
    for (const Warning& warning : advice.warnings) {
        warnings.add(Json::object({{"line", warning.where.line},
                                   {"column", warning.where.column},
                                   {"what", warning.what},
                                   {"fix", warning.fix}}));
    }
    return Json::object({{"schema", 1},
                         {"input", document.file()},
                         {"output", output.empty() ? Json() : Json(output)},
                         {"dialect", settings.dialect().name},
                         {"read_by", Json::array_of(programs_of(use))},
                         {"gpu", facts.gpu ? Json(facts.gpu->name) : Json()},
                         {"gpus", facts.processes},
                         {"cores", facts.cores},
                         {"changes", changes},
                         {"advice", additions},
                         {"warnings", warnings},
                         {"notes", Json::array_of(advice.notes)}});
}

}  // namespace saturate
