// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/python_json.h"

#include <fmt/format.h>

namespace saturate {

MeanStep times_of(const RunRecord& record) {
    StepSums steady = account_of(record).steady;
    if (steady.steps == 0) return {};
    return {.step = 1e9 * steady.step_seconds(),
            .wait = 1e9 * steady.sum(StepPart::input_wait) / static_cast<double>(steady.steps),
            .n = steady.steps};
}

std::string where_of(const Json& site) {
    auto file = site["file"].string();
    if (!file) return "";
    return fmt::format("{}:{} ({})", *file, site["line"].integer().value_or(0),
                       site["function"].string().value_or("?"));
}

Json training_loader(const Json& python) {
    std::int64_t most = 0, number = -1;
    for (const Json& one : python["steps_by_loader"].items()) {
        if (auto steps = one["steps"].integer(); steps && *steps > most) {
            most = *steps;
            number = one["loader"].integer().value_or(-1);
        }
    }
    for (const Json& loader : python["loaders"].items()) {
        if (loader["id"].integer() == number) return loader;
    }
    return {};
}

bool is_on_gpu(const Json& python) {
    std::string device = python["device"].string().value_or("");
    return !device.empty() && device != "cpu";
}

bool may_persist(const Json& python, const Json& loader) {
    if (loader["second_iterators"].integer().value_or(0) > 0) return false;
    for (const Json& change : python["changes"].items()) {
        std::string state = change["state"].string().value_or("");
        if (change["name"].string() == "persistent_workers" && state != "applied" &&
            change["loader"].integer() == loader["id"].integer())
            return false;
    }
    return true;
}

void advise_no_persistence(std::vector<Finding>& findings) {
    constexpr std::string_view kWords = "persistent_workers=True";
    for (Finding& finding : findings) {
        std::erase_if(finding.settings,
                      [](const SettingChange& one) { return one.key == "persistent_workers"; });
        std::string fix = finding.fix_text();
        for (std::string_view around : {", persistent_workers=True", "persistent_workers=True, ",
                                        "persistent_workers=True and "}) {
            if (std::size_t at = fix.find(around); at != std::string::npos)
                finding.fix = fix.erase(at, around.size());
        }
        if (std::size_t at = finding.patch.find(kWords); at != std::string::npos)
            finding.patch.clear();
    }
}

Finding* found(std::vector<Finding>& findings, std::string_view id) {
    auto at = std::ranges::find(findings, id, &Finding::id);
    return at == findings.end() ? nullptr : &*at;
}

Gain gain_of(double likely, double bound) {
    likely = std::max(1.0, std::min(likely, bound));
    return {1.0 + 0.6 * (likely - 1.0), likely, std::max(bound, likely)};
}

}  // namespace saturate
