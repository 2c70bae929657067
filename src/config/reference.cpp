// SPDX-License-Identifier: Apache-2.0
#include "config/reference.h"

#include <fmt/format.h>

#include "config/dialect.h"
#include "config/schema.h"

namespace saturate {

namespace {

std::string value_text(const SettingInfo& info) {
    switch (info.kind) {
        case Kind::whole:
            return fmt::format("whole number, {} to {}", info.least, info.most);
        case Kind::number:
            return fmt::format("number, {} to {}", info.least, info.most);
        case Kind::flag:
            return "true or false";
        case Kind::precision:
            return "true, bf16, fp16, none, off";
        case Kind::compile:
            return "true, false or a mode";
        case Kind::size:
            return "whole number, or a list";
        case Kind::word:
            break;
    }
    return "word";
}

std::string names_in(const Dialect& dialect, Setting setting) {
    std::string out;
    for (const Alias& alias : dialect.aliases) {
        if (alias.setting == setting)
            out += fmt::format("{}`{}`", out.empty() ? "" : ", ", path_text(alias.key));
    }
    return out;
}

}  // namespace

std::string settings_reference() {
    std::string out =
        "# Settings\n\n"
        "Made from the schema (`src/config/schema.cpp`) and the alias table "
        "(`src/config/aliases.csv`).\n\n"
        "The level says how far a change goes: `safe` changes nothing but time, `numerics` also "
        "rounding, "
        "`training` also how the model is trained,\n"
        "`model` the model itself. `saturate optimize --level` goes up to the level you name, by "
        "default `training`.\n\n"
        "| setting | values | default | level | what it is |\n|---|---|---|---|---|\n";
    for (const SettingInfo& info : schema()) {
        out += fmt::format("| `{}` | {} | {} | {} | {} |\n", info.name, value_text(info),
                           info.default_text.empty() ? "-" : info.default_text,
                           level_name(info.level), info.help);
    }
    out +=
        "\n## Names in other frameworks\n\n"
        "A file's dialect is recognised by the keys that only one framework has; `saturate "
        "optimize` names it. Keys count at their own\n"
        "place and below sections (`train.batch_size`), except below those of validation and test. "
        "`plain` is a hand-written loop; its\n"
        "names, in any case, work in our own files (those with `job:`) too.\n";
    for (const Dialect& dialect : dialects()) {
        if (dialect.is_ours()) continue;
        out += fmt::format("\n### {}\n\n| setting | names |\n|---|---|\n", dialect.name);
        for (const SettingInfo& info : schema()) {
            std::string names = names_in(dialect, info.id);
            if (!names.empty()) out += fmt::format("| `{}` | {} |\n", info.name, names);
        }
    }
    return out;
}

}  // namespace saturate
