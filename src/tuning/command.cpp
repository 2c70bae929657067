// SPDX-License-Identifier: Apache-2.0
#include "tuning/command.h"

#include "base/text.h"
#include "config/schema.h"
#include "diagnosis/python_json.h"
#include "remedies/catalogue.h"

namespace saturate {

namespace {

// True if the shim of `run` can change the setting and a trial can judge it.
bool is_applied(const Remedy& remedy) { return remedy.is_measured && !remedy.shim.name.empty(); }

void replace_all(std::string& text, const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
}

bool is_on(const std::string& value) {
    return value == "true" || value == "on" || value == "yes" || value == "bf16";
}

}  // namespace

std::set<std::string> placeholders(const std::vector<std::string>& command) {
    std::set<std::string> out;
    for (const std::string& word : command) {
        for (std::size_t at = word.find('{'); at != std::string::npos;
             at = word.find('{', at + 1)) {
            std::size_t end = word.find('}', at);
            if (end == std::string::npos) break;
            std::string name = word.substr(at + 1, end - at - 1);
            if (find_setting(name)) out.insert(name);
        }
    }
    return out;
}

std::set<std::string> tunable_settings(const std::vector<std::string>& command, bool on_cpu) {
    std::set<std::string> out = placeholders(command);
    for (const Remedy& remedy : remedies()) {
        if (is_applied(remedy) && (!on_cpu || !remedy.for_gpu)) out.emplace(remedy.name);
    }
    return out;
}

CommandWords command_words(const std::vector<std::string>& command, const Assignment& start,
                           const Assignment& changes) {
    Assignment values = start;
    for (const auto& [key, value] : changes) values[key] = value;
    CommandWords out;
    for (std::string word : command) {
        for (const auto& [key, value] : values) replace_all(word, "{" + key + "}", value);
        out.words.push_back(word);
    }
    std::set<std::string> named = placeholders(command);
    std::vector<std::string> parts;
    for (const Remedy& remedy : remedies()) {
        std::string key(remedy.name);
        auto change = changes.find(key);
        if (!is_applied(remedy) || change == changes.end() || named.contains(key)) continue;
        if (remedy.shim.has_value)
            parts.push_back(std::string(remedy.shim.name) + "=" + change->second);
        else if (is_on(change->second))
            parts.emplace_back(remedy.shim.name);
    }
    out.apply = join(parts, ",");
    return out;
}

ScriptFacts script_facts(const Json& python) {
    ScriptFacts out;
    Json loader = training_loader(python);
    if (!loader.is_object()) return out;
    for (const char* name : {"num_workers", "prefetch_factor", "batch_size"}) {
        if (auto value = loader[name].integer()) out.values[name] = std::to_string(*value);
    }
    for (const char* name : {"persistent_workers", "pin_memory"}) {
        if (auto value = loader[name].boolean()) out.values[name] = *value ? "true" : "false";
    }
    out.in_memory = loader["in_memory"].boolean().value_or(false);
    return out;
}

}  // namespace saturate
