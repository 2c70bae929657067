// SPDX-License-Identifier: Apache-2.0
// The answer of a search, by setting and as JSON.
#include "tuning/search.h"

namespace saturate {

std::vector<KeptSetting> kept_settings(const SearchAnswer& answer) {
    std::vector<KeptSetting> out;
    for (const auto& [key, value] : answer.best) {
        KeptSetting kept{.key = key, .value = value};
        for (const Tried& tried : answer.trials) {
            if (!tried.kept || !tried.change.contains(key)) continue;
            const std::string& first = tried.change.begin()->first;
            if (first == key)
                kept.ratio = kept.ratio.value_or(1) * tried.ratio;
            else
                kept.with = first;
            kept.reason = tried.reason;
            if (tried.rate) kept.rate = tried.rate->per_second;
        }
        if (kept.reason.empty() && answer.best.contains("batch_size")) {
            kept.with = "batch_size";
            kept.reason = "follows the batch size";
        }
        out.push_back(std::move(kept));
    }
    return out;
}

Json to_json(const SearchAnswer& answer) {
    auto rate = [](const std::optional<Rate>& r) {
        if (!r) return Json();
        return Json::object({{"rate", r->per_second},
                             {"median", r->per_second},  // its older name
                             {"low", r->low},
                             {"high", r->high},
                             {"n", r->n}});
    };
    auto object = [](const Assignment& settings) {
        Json out = Json::object();
        for (const auto& [key, value] : settings) out.set(key, value);
        return out;
    };
    Json trials = Json::array();
    for (const Tried& tried : answer.trials) {
        trials.add(Json::object({{"cause", tried.cause},
                                 {"reason", tried.reason},
                                 {"change", object(tried.change)},
                                 {"outcome", std::string(outcome_name(tried.outcome))},
                                 {"message", tried.message},
                                 {"samples_per_second", rate(tried.rate)},
                                 {"ratio", tried.ratio},
                                 {"kept", tried.kept},
                                 {"from_cache", tried.from_cache},
                                 {"seconds", tried.seconds}}));
    }
    Json out =
        Json::object({{"baseline", rate(answer.baseline)},
                      {"best", rate(answer.best_rate)},
                      {"upper_bound", answer.upper_bound},
                      {"settings", object(answer.best)},
                      {"trials", trials},
                      {"ended", answer.ended},
                      {"notes", Json::array_of(answer.notes)},
                      {"unreachable", Json::array_of(std::vector<std::string>(
                                          answer.unreachable.begin(), answer.unreachable.end()))}});
    if (answer.batch) out.set("batch", to_json(*answer.batch));
    return out;
}

}  // namespace saturate
