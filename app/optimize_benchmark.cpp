// SPDX-License-Identifier: Apache-2.0
#include "optimize_benchmark.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "remedies/catalogue.h"
#include "report/tuning_text.h"

namespace saturate {

namespace {

// True if the search measures this setting, so that no estimate is given for it.
bool is_measured(Setting setting, const SearchAnswer& search) {
    using enum Setting;
    if (setting == eval_interval || setting == checkpoint_interval)
        return std::ranges::any_of(search.trials, [](const Tried& tried) {
            return tried.cause == "pauses" && tried.outcome == TrialOutcome::ok;
        });
    const Remedy* remedy = find_remedy(setting);
    return remedy && remedy->is_measured;
}

std::vector<FoundValue> found_values(const SearchAnswer& search, const Assignment& chosen,
                                     bool is_proven) {
    std::vector<FoundValue> out;
    for (const KeptSetting& kept : kept_settings(search)) {
        const SettingInfo* info = find_setting(kept.key);
        if (!info || !chosen.contains(kept.key)) continue;
        FoundValue found{.setting = info->id, .value = kept.value, .reason = kept.reason};
        if (!is_proven) {
            found.reason += ", not proven";
        } else if (kept.ratio) {
            found.reason += fmt::format(", measured {:+.0f} %", 100 * (*kept.ratio - 1));
            found.effect = kept.rate > 0
                               ? fmt::format("{} samples/s measured", rate_text(kept.rate))
                               : fmt::format("over whole epochs, from the measured pauses");
        }
        out.push_back(found);
    }
    return out;
}

}  // namespace

Benchmarked benchmarked(const Document& document, const Settings& settings, Advice estimate,
                        const TuneRequest& request, const TuneAnswer& answer, bool with_unproven) {
    ProvenSettings proven = proven_settings(request, answer);
    Benchmarked out{.advice = {}, .rest = {}, .why = proven.why};
    Assignment chosen = with_unproven ? answer.search.best : proven.settings;
    out.advice =
        advise_values(document, settings, found_values(answer.search, chosen, proven.why.empty()));
    if (!with_unproven) {
        for (const UnprovenSetting& setting : proven.rest)
            out.rest.push_back(
                {setting.key, value_of(request.start, setting.key), setting.value, setting.why});
    }
    // Keep the estimates for settings that a short run cannot measure.
    for (Change& change : estimate.changes) {
        bool is_default = change.before.empty() && settings.dialect().name == "saturate" &&
                          info_of(change.setting).default_text == change.after;
        if (is_measured(change.setting, answer.search) || is_default) continue;
        if (with_unproven) {
            change.effect += change.effect.empty() ? "not measured" : "; not measured";
            out.advice.changes.push_back(std::move(change));
        } else {
            out.rest.push_back({path_text(change.edit.path), change.before, change.after,
                                "an estimate, not measured"});
        }
    }
    out.advice.warnings = std::move(estimate.warnings);
    return out;
}

std::string measured_text(const TuneAnswer& answer, const Benchmarked& proven,
                          const std::filesystem::path& folder) {
    std::string out;
    if (answer.proof)
        out += proof_text(*answer.proof);
    else if (answer.search.best.empty())
        out += "Nothing that was tried is faster than the current settings.\n";
    if (!proven.rest.empty())
        out += "\nNot proven, and not written (--unproven writes it anyway):\n";
    for (const LeftOut& left : proven.rest)
        out += fmt::format("  {}: {} -> {}  ({})\n", left.key, or_dash(left.before),
                           or_dash(left.after), left.why);
    if (!proven.rest.empty()) out += "\n";
    return out + fmt::format("{} trials in {:.0f} s; all of them, tune.json and proof.json: {}\n\n",
                             answer.search.trials.size(), answer.seconds, folder.string());
}

Json unproven_json(const Benchmarked& proven) {
    Json out = Json::array();
    for (const LeftOut& left : proven.rest) {
        out.add(Json::object({{"key", left.key},
                              {"before", left.before.empty() ? Json() : Json(left.before)},
                              {"after", left.after},
                              {"why", left.why}}));
    }
    return out;
}

}  // namespace saturate
