// SPDX-License-Identifier: Apache-2.0
// run.json and summary.json: the two parts of a record that are read as a whole.
#include "telemetry/record_json.h"

namespace saturate {

Json info_json(const RunInfo& info) {
    return Json::object({{"schema", kRecordSchema},
                         {"kind", info.kind},
                         {"version", info.version},
                         {"command", Json::array_of(info.command)},
                         {"host", info.host},
                         {"pid", info.pid},
                         {"started_wall_ns", info.started_wall_ns},
                         {"started_ns", info.started_ns},
                         {"device", info.device},
                         {"simulated", info.simulated},
                         {"rank", info.rank},
                         {"world_size", info.world_size},
                         {"seed", info.seed},
                         {"git_revision", info.git_revision},
                         {"settings_source", info.settings_source},
                         {"settings_text", info.settings_text},
                         {"machine", info.machine},
                         {"extra", info.extra}});
}

RunInfo info_of(const Json& json) {
    RunInfo info;
    auto text = [&](std::string_view key) { return json[key].string().value_or(""); };
    auto whole = [&](std::string_view key) { return json[key].integer().value_or(0); };
    info.kind = text("kind");
    info.version = text("version");
    for (const Json& word : json["command"].items())
        info.command.push_back(word.string().value_or(""));
    info.host = text("host");
    info.pid = whole("pid");
    info.started_wall_ns = whole("started_wall_ns");
    info.started_ns = whole("started_ns");
    info.device = text("device");
    info.simulated = json["simulated"].boolean().value_or(false);
    info.rank = static_cast<int>(whole("rank"));
    info.world_size = static_cast<int>(json["world_size"].integer().value_or(1));
    info.seed = json["seed"].integer();
    info.git_revision = json["git_revision"].string();
    info.settings_source = text("settings_source");
    info.settings_text = text("settings_text");
    info.machine = json["machine"];
    info.extra = json["extra"];
    return info;
}

namespace {

struct Real {
    std::string_view name;
    std::optional<double> RunSummary::*member;
};

constexpr Real kSummaryReals[] = {
    {"step_p50_ms", &RunSummary::step_p50_ms},     {"step_p99_ms", &RunSummary::step_p99_ms},
    {"busy_percent", &RunSummary::busy_percent},   {"busy_deviation", &RunSummary::busy_deviation},
    {"energy_joules", &RunSummary::energy_joules}, {"mfu_percent", &RunSummary::mfu_percent},
    {"loss_first", &RunSummary::loss_first},       {"loss_last", &RunSummary::loss_last},
};

}  // namespace

Json summary_json(const RunSummary& summary) {
    Json json = Json::object({{"schema", kRecordSchema},
                              {"ended", summary.ended},
                              {"duration_ns", summary.duration_ns},
                              {"exit_status", summary.exit_status},
                              {"steps", summary.steps},
                              {"samples", summary.samples}});
    Json rate;
    if (const auto& spread = summary.samples_per_second) {
        rate = Json::object({{"rate", spread->rate},
                             {"median", spread->median},
                             {"low", spread->low},
                             {"high", spread->high},
                             {"n", spread->n}});
    }
    json.set("samples_per_second", rate);
    for (const Real& field : kSummaryReals) json.set(field.name, summary.*field.member);
    Json stalls = Json::object();
    for (const auto& [name, percent] : summary.stall_percent) stalls.set(name, percent);
    json.set("stall_percent", stalls);
    json.set("memory_peak_bytes", summary.memory_peak_bytes);
    json.set("verdict", summary.verdict);
    json.set("dropped", Json::object({{"steps", summary.dropped_steps},
                                      {"events", summary.dropped_events},
                                      {"samples", summary.dropped_samples}}));
    json.set("extra", summary.extra);
    return json;
}

RunSummary summary_of(const Json& json) {
    RunSummary summary;
    summary.ended = json["ended"].string().value_or("");
    summary.duration_ns = json["duration_ns"].integer().value_or(0);
    if (auto status = json["exit_status"].integer())
        summary.exit_status = static_cast<int>(*status);
    summary.steps = json["steps"].integer();
    summary.samples = json["samples"].integer();
    if (const Json& rate = json["samples_per_second"]; rate.is_object()) {
        double median = rate["median"].number().value_or(0);
        // Older records have no overall rate.
        summary.samples_per_second = RunRate{.rate = rate["rate"].number().value_or(median),
                                             .median = median,
                                             .low = rate["low"].number().value_or(0),
                                             .high = rate["high"].number().value_or(0),
                                             .n = rate["n"].integer().value_or(0)};
    }
    for (const Real& field : kSummaryReals) summary.*field.member = json[field.name].number();
    for (const auto& [name, percent] : json["stall_percent"].members()) {
        if (auto value = percent.number()) summary.stall_percent.emplace_back(name, *value);
    }
    if (auto peak = json["memory_peak_bytes"].integer(); peak && *peak >= 0) {
        summary.memory_peak_bytes = static_cast<std::uint64_t>(*peak);
    }
    summary.verdict = json["verdict"].string().value_or("");
    const Json& dropped = json["dropped"];
    summary.dropped_steps = static_cast<std::uint64_t>(dropped["steps"].integer().value_or(0));
    summary.dropped_events = static_cast<std::uint64_t>(dropped["events"].integer().value_or(0));
    summary.dropped_samples = static_cast<std::uint64_t>(dropped["samples"].integer().value_or(0));
    summary.extra = json["extra"];
    return summary;
}

}  // namespace saturate
