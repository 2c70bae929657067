// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "diagnosis/diagnosis.h"

namespace saturate {
namespace {

// Rounds to `digits` decimal places.
double rounded(double value, double digits) {
    double scale = std::pow(10.0, digits);
    return std::round(value * scale) / scale;
}

Json gain_json(const Gain& gain) {
    return Json::object({{"low", rounded(gain.low, 4)},
                         {"likely", rounded(gain.likely, 4)},
                         {"high", rounded(gain.high, 4)}});
}

Json finding_json(const Finding& finding) {
    Json out = Json::object({{"id", finding.id},
                             {"name", finding.name()},
                             {"share_percent", rounded(finding.share_percent, 3)},
                             {"ms_per_step", rounded(finding.ms_per_step, 3)},
                             {"count", finding.count},
                             {"confidence", confidence_text(finding.confidence)},
                             {"evidence", finding.evidence},
                             {"fix", finding.fix_text()},
                             {"gain", gain_json(finding.gain)}});
    Json settings = Json::array();
    for (const SettingChange& setting : finding.settings)
        settings.add(Json::object({{"key", setting.key}, {"value", setting.value}}));
    out.set("settings", settings);
    Json examples = Json::array();
    for (const Example& example : finding.examples) {
        Json one =
            Json::object({{"time_ms", rounded(static_cast<double>(example.time_ns) / 1e6, 3)},
                          {"text", example.text}});
        if (!example.source.empty()) one.set("source", example.source);
        examples.add(one);
    }
    out.set("examples", examples);
    out.set("sources", Json::array_of(finding.sources));
    if (!finding.where.empty()) out.set("where", finding.where);
    if (!finding.patch.empty()) out.set("patch", finding.patch);
    if (!finding.part_of.empty()) out.set("part_of", finding.part_of);
    if (finding.optional) out.set("optional", true);
    if (!finding.surer.empty()) out.set("surer", finding.surer);
    if (!finding.assumes.empty()) out.set("assumes", finding.assumes);
    return out;
}

Json ranks_json(const RankComparison& ranks) {
    Json out = Json::array();
    for (const RankFacts& rank : ranks.ranks) {
        bool late = std::find(ranks.late.begin(), ranks.late.end(), rank.rank) != ranks.late.end();
        out.add(Json::object({{"rank", rank.rank},
                              {"file", rank.file},
                              {"busy_percent", rounded(rank.busy_percent, 3)},
                              {"communication_percent", rounded(rank.communication_percent, 3)},
                              {"wait_ms", rounded(static_cast<double>(rank.wait_ns) / 1e6, 3)},
                              {"latest", rank.latest},
                              {"late", late}}));
    }
    return out;
}

}  // namespace

Json to_json(const Diagnosis& diagnosis, std::size_t most, bool everything) {
    Json out = Json::object({{"schema", 1}, {"verdict", diagnosis.verdict}});
    out.set("inputs", Json::array_of(diagnosis.inputs));
    out.set("device", diagnosis.device.empty() ? Json() : Json(diagnosis.device));
    out.set("window_ms", rounded(diagnosis.window_ms, 3));
    if (diagnosis.window) {
        Json left_out = Json::array();
        for (const auto& [kind, ms] : diagnosis.window->left_out)
            left_out.add(Json::object({{"kind", kind}, {"ms", rounded(ms, 3)}}));
        Json window = Json::object({{"whole_ms", rounded(diagnosis.window->whole_ms, 3)},
                                    {"steady_ms", rounded(diagnosis.window->steady_ms, 3)}});
        if (diagnosis.window->whole_busy_percent)
            window.set("whole_busy_percent", rounded(*diagnosis.window->whole_busy_percent, 3));
        window.set("left_out", left_out);
        out.set("window", window);
    }
    out.set("steps", diagnosis.steps);
    auto maybe = [](const std::optional<double>& value) {
        return value ? Json(rounded(*value, 3)) : Json();
    };
    out.set("step_ms", maybe(diagnosis.step_ms));
    out.set("busy_percent", maybe(diagnosis.busy_percent));
    const SplitPercent& split = diagnosis.split;
    out.set("split_percent", Json::object({{"compute", rounded(split.compute, 3)},
                                           {"communication", rounded(split.communication, 3)},
                                           {"memcpy", rounded(split.memcpy, 3)},
                                           {"memset", rounded(split.memset, 3)},
                                           {"idle", rounded(split.idle, 3)},
                                           {"unknown", rounded(split.unknown, 3)}}));
    Json idle = Json::object();
    for (const auto& [cause, share] : diagnosis.idle) idle.set(cause_key(cause), rounded(share, 3));
    out.set("idle_percent", idle);
    Json findings = Json::array();
    for (const Finding& finding : diagnosis.shown(most, everything))
        findings.add(finding_json(finding));
    out.set("findings", findings);
    out.set("total_gain", gain_json(diagnosis.total));
    out.set("replay_error_percent", maybe(diagnosis.replay_error_percent));
    Json health = Json::array();
    for (const HealthNote& note : diagnosis.health) {
        Json one = Json::object({{"id", note.id}, {"text", note.text}});
        if (!note.advice.empty()) one.set("advice", note.advice);
        health.add(one);
    }
    out.set("health", health);
    out.set("truncated", diagnosis.truncated);
    out.set("dropped_events", diagnosis.dropped_events);
    out.set("repaired_events", diagnosis.repaired_events);
    if (diagnosis.ranks) {
        out.set("ranks", ranks_json(*diagnosis.ranks));
        out.set("late_ranks", Json::array_of(diagnosis.ranks->late));
        out.set("transfer_ms", rounded(static_cast<double>(diagnosis.ranks->transfer_ns) / 1e6, 3));
    }
    return out;
}

}  // namespace saturate
