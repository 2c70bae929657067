// SPDX-License-Identifier: Apache-2.0
#include "tuning/config_file.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "config/edit.h"
#include "remedies/advise.h"
#include "remedies/facts.h"

namespace saturate {

ConfigFile::ConfigFile(std::string text, std::string name)
    : name_(std::move(name)),
      document_(Document::parse(std::move(text), name_)),
      settings_(Settings::read(document_)) {}

Assignment ConfigFile::values() const { return values_in_force(settings_); }

std::set<std::string> ConfigFile::tunable() const {
    std::set<std::string> out;
    for (const auto& [key, value] : values()) {
        const SettingInfo* info = find_setting(key);
        const Value* found = info ? settings_.get(info->id) : nullptr;
        if (found && !found->left_alone && !left_out_.contains(key)) out.insert(key);
    }
    return out;
}

std::set<std::string> ConfigFile::leave_out(const std::set<int>& lines) {
    for (const std::string& key : tunable())
        if (lines.contains(settings_.get(find_setting(key)->id)->place.line)) left_out_.insert(key);
    return left_out_;
}

std::string ConfigFile::with(const Assignment& values) const {
    std::vector<FoundValue> wanted;
    for (const auto& [key, value] : values) {
        const SettingInfo* info = find_setting(key);
        SATURATE_CHECK(info != nullptr, "a search changes settings of the schema");
        wanted.push_back({.setting = info->id, .value = value, .reason = {}, .effect = {}});
    }
    Advice advice = advise_values(document_, settings_, wanted);
    if (!advice.notes.empty())
        throw UserError({.where = {name_}, .found = advice.notes[0], .expected = {}, .fix = {}});
    std::vector<Edit> edits;
    for (const Change& change : advice.changes) edits.push_back(change.edit);
    return apply_edits(document_, edits);
}

}  // namespace saturate
