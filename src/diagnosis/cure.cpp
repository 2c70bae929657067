// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/cure.h"

#include <algorithm>

#include "diagnosis/python_json.h"
#include "remedies/catalogue.h"

namespace saturate {

std::vector<SettingChange> cures(std::string_view finding, const Facts& facts) {
    std::vector<SettingChange> out;
    auto add = [&](const std::string& key, const std::string& value) {
        bool is_new = std::ranges::find(out, key, &SettingChange::key) == out.end();
        if (is_new) out.push_back({key, value});
    };
    for (const Choice& choice : choices_for(finding, facts)) {
        add(std::string(choice.remedy->name), *choice.proposal.value);
        for (const auto& [key, value] : choice.proposal.with) add(key, value);
    }
    return out;
}

std::string cure_of(const std::vector<SettingChange>& settings, std::string_view key) {
    auto found = std::ranges::find(settings, key, &SettingChange::key);
    return found == settings.end() ? "" : found->value;
}

Facts record_facts(const RunRecord& record) {
    Facts facts{.cores = 0};
    for (const HostSample& sample : record.hosts) {
        if (sample.cores) facts.cores = *sample.cores;
    }
    const Json& python = record.python;
    facts.is_python = python.is_object();
    if (!facts.is_python) return facts;
    facts.on_cpu = !is_on_gpu(python);
    if (auto cores = python["flags"]["cores"].integer()) facts.cores = static_cast<int>(*cores);
    Json loader = training_loader(python);
    for (const char* name : {"num_workers", "prefetch_factor", "batch_size"}) {
        if (auto value = loader[name].integer()) facts.now[name] = std::to_string(*value);
    }
    for (const char* name : {"persistent_workers", "pin_memory"}) {
        if (auto value = loader[name].boolean()) facts.now[name] = *value ? "true" : "false";
    }
    facts.in_memory = loader["in_memory"].boolean().value_or(false);
    facts.start = facts.now;
    return facts;
}

}  // namespace saturate
