// SPDX-License-Identifier: Apache-2.0
#include "remedies/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "remedies/cures.h"

namespace saturate {

namespace {

using Set = ShimWay::Set;

// The model comes first, because all later remedies are for that model.
std::vector<Remedy> all_remedies() {
    std::vector<Remedy> out;
    for (std::span<const Remedy> rows :
         {model_remedies(), loader_remedies(), device_remedies(), training_remedies()})
        out.insert(out.end(), rows.begin(), rows.end());
    return out;
}

}  // namespace

bool Remedy::relieves(std::string_view finding) const {
    return std::ranges::any_of(split(causes, ' '),
                               [&](std::string_view id) { return id == finding; });
}

std::span<const Remedy> remedies() {
    static const std::vector<Remedy> kRemedies = all_remedies();
    return kRemedies;
}

const Remedy* find_remedy(std::string_view name) {
    for (const Remedy& remedy : remedies()) {
        if (remedy.name == name) return &remedy;
    }
    for (const Remedy& remedy : remedies()) {
        if (!name.empty() && remedy.shim.name == name) return &remedy;
    }
    return nullptr;
}

const Remedy* find_remedy(Setting setting) {
    for (const Remedy& remedy : remedies()) {
        if (remedy.setting == setting) return &remedy;
    }
    return nullptr;
}

std::vector<Choice> choices_for(std::string_view finding, const Facts& facts) {
    std::vector<Choice> out;
    for (const Remedy& remedy : remedies()) {
        if (!remedy.relieves(finding) || (remedy.for_gpu && facts.on_cpu)) continue;
        Proposal proposal = remedy.propose(facts);
        if (proposal.value) out.push_back({&remedy, std::move(proposal)});
    }
    // A remedy that lists the finding first is the most specific.
    std::ranges::stable_sort(
        out, {}, [&](const Choice& choice) { return choice.remedy->causes.find(finding); });
    return out;
}

std::string shim_table() {
    std::string levels, safe, numerics, by_name, needed, valued;
    for (const Remedy& remedy : remedies()) {
        if (remedy.shim.name.empty()) continue;
        std::string name = fmt::format("\"{}\", ", remedy.shim.name);
        levels +=
            fmt::format("    \"{}\": \"{}\",\n", remedy.shim.name, level_name(remedy.level()));
        (remedy.shim.set == Set::safe       ? safe
         : remedy.shim.set == Set::numerics ? numerics
                                            : by_name) += name;
        if (remedy.shim.for_need) needed += name;
        if (remedy.shim.has_value) valued += name;
    }
    return fmt::format(
        "# Made from src/remedies/catalogue.cpp.\n"
        "LEVELS = {{\n{}}}\n"
        "SAFE = ({})  # what --apply safe asks for\n"
        "NUMERICS = ({})  # what --apply numerics asks for besides\n"
        "BY_NAME = ({})  # faster here, slower there: only where asked for\n"
        "NEEDED = ({})  # whose need a run can measure: --apply auto\n"
        "VALUED = ({})  # name=value\n",
        levels, safe, numerics, by_name, needed, valued);
}

}  // namespace saturate
