// SPDX-License-Identifier: Apache-2.0
#include "report/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "config/document.h"
#include "report/tuning_text.h"

namespace saturate {

namespace {

struct Measure {
    const char* key;
    const char* name;
    std::optional<double> (*value)(const RunView&);
    std::string (*text)(const RunView&);
};

std::string optional_text(const std::optional<double>& value, const char* format) {
    return value ? fmt::format(fmt::runtime(format), *value) : std::string("-");
}

std::optional<double> share_of(const RunView& run, std::string_view phase) {
    for (const auto& [name, percent] : run.split) {
        if (name == phase) return percent;
    }
    return std::nullopt;
}

constexpr Measure kMeasures[] = {
    {"busy_percent", "utilisation", [](const RunView& r) { return r.busy_mean; },
     [](const RunView& r) {
         return r.busy_mean
                    ? fmt::format("{:.1f} % ± {:.1f}", *r.busy_mean, r.busy_deviation.value_or(0))
                    : "-";
     }},
    {"samples_per_second", "samples per second",
     [](const RunView& r) {
         return r.samples_per_second ? std::optional(r.samples_per_second->rate) : std::nullopt;
     },
     [](const RunView& r) {
         if (!r.samples_per_second) return std::string("-");
         const RunRate& s = *r.samples_per_second;
         if (s.n < 2) return fmt::format("{} (n={})", rate_text(s.rate), s.n);
         return fmt::format("{} (n={}, {}..{})", rate_text(s.rate), s.n, rate_text(s.low),
                            rate_text(s.high));
     }},
    {"step_p50_ms", "step, median", [](const RunView& r) { return r.step_p50_ms; },
     [](const RunView& r) { return optional_text(r.step_p50_ms, "{:.2f} ms"); }},
    {"step_p99_ms", "step, 99th percentile", [](const RunView& r) { return r.step_p99_ms; },
     [](const RunView& r) { return optional_text(r.step_p99_ms, "{:.2f} ms"); }},
    {"input_wait_percent", "waiting for data",
     [](const RunView& r) { return share_of(r, "input_wait"); },
     [](const RunView& r) { return optional_text(share_of(r, "input_wait"), "{:.1f} %"); }},
    {"communication_percent", "waiting for other ranks",
     [](const RunView& r) { return share_of(r, "communication"); },
     [](const RunView& r) { return optional_text(share_of(r, "communication"), "{:.1f} %"); }},
    {"memory_peak_bytes", "peak memory", [](const RunView& r) { return r.memory_peak_bytes; },
     [](const RunView& r) {
         return r.memory_peak_bytes ? bytes_text(static_cast<std::uint64_t>(*r.memory_peak_bytes))
                                    : "-";
     }},
    {"power_mean_watts", "mean power", [](const RunView& r) { return r.power_mean_watts; },
     [](const RunView& r) { return optional_text(r.power_mean_watts, "{:.0f} W"); }},
    {"joules_per_1000_samples", "energy per 1,000 samples",
     [](const RunView& r) { return r.joules_per_1000_samples(); },
     [](const RunView& r) { return optional_text(r.joules_per_1000_samples(), "{:.1f} J"); }},
    {"loss_last", "last loss", [](const RunView& r) { return r.loss_last; },
     [](const RunView& r) { return optional_text(r.loss_last, "{:.4g}"); }},
};

void flatten(const Node& node, const std::string& path, std::map<std::string, std::string>& out) {
    if (node.kind == Node::Kind::map) {
        for (const Member& member : node.members)
            flatten(member.value, path.empty() ? member.key : path + "." + member.key, out);
    } else if (node.kind == Node::Kind::sequence) {
        std::string text;
        for (const Node& item : node.items) text += (text.empty() ? "" : ", ") + item.text;
        out[path] = "[" + text + "]";
    } else {
        out[path] = node.text;
    }
}

// Adds rows for jobs with several processes: the rate of all processes together, and how much of
// the rate per process is left compared with the run with the fewest processes.
void add_scaling(const ReportInput& input, std::vector<ReportRow>& rows) {
    const RunView& most = *std::ranges::max_element(
        input.runs, {}, [](const RunView& r) { return r.info.world_size; });
    if (most.info.world_size < 2) return;
    const RunView& fewest = *std::ranges::min_element(
        input.runs, {}, [](const RunView& r) { return r.info.world_size; });
    ReportRow ranks{.key = "ranks", .name = translated("ranks", input.language)};
    ReportRow all{.key = "samples_per_second_all_ranks",
                  .name = translated("samples per second, all ranks", input.language)};
    ReportRow kept{.key = "scaling_efficiency_percent",
                   .name = translated("scaling efficiency", input.language)};
    for (const RunView& run : input.runs) {
        ranks.cells.push_back(std::to_string(run.info.world_size));
        bool known = run.samples_per_second && fewest.samples_per_second &&
                     fewest.samples_per_second->rate > 0;
        all.cells.push_back(run.samples_per_second
                                ? rate_text(run.samples_per_second->rate * run.info.world_size)
                                : "-");
        kept.cells.push_back(known ? fmt::format("{:.0f} %", 100 * run.samples_per_second->rate /
                                                                 fewest.samples_per_second->rate)
                                   : "-");
    }
    rows.push_back(std::move(ranks));
    rows.push_back(std::move(all));
    if (fewest.info.world_size < most.info.world_size) rows.push_back(std::move(kept));
}

std::map<std::string, std::string> settings_of(const RunView& run) {
    std::map<std::string, std::string> out;
    if (run.info.settings_text.empty()) return out;
    try {
        Document document = Document::parse(run.info.settings_text, run.info.settings_source);
        flatten(document.root(), "", out);
    } catch (const UserError&) {
        // A text that is not a configuration has no settings to compare.
    }
    return out;
}

Json curve_json(const Curve& curve) {
    Json points = Json::array();
    for (std::size_t i = 0; i < curve.buckets().size(); ++i) {
        const Curve::Bucket& b = curve.buckets()[i];
        if (b.n == 0) continue;
        auto rounded = [](double value) {
            if (value == 0) return 0.0;
            double scale = std::pow(10, 4 - std::floor(std::log10(std::abs(value))));
            return std::round(value * scale) / scale;
        };
        points.add(Json::array({rounded((static_cast<double>(i) + 0.5) * curve.width()),
                                rounded(b.sum / b.weight), rounded(b.least), rounded(b.most)}));
    }
    return points;
}

Json run_json(const RunView& run) {
    Json gpus = Json::array();
    for (const GpuCurves& gpu : run.gpus) {
        gpus.add(Json::object({{"gpu", gpu.gpu},
                               {"name", gpu.name},
                               {"utilisation", curve_json(gpu.utilisation)},
                               {"power", curve_json(gpu.power)},
                               {"memory", curve_json(gpu.memory)},
                               {"temperature", curve_json(gpu.temperature)}}));
    }
    Json split = Json::object();
    for (const auto& [name, percent] : run.split) split.set(name, percent);
    Json events = Json::array();
    for (const EventRecord& event : run.events) {
        events.add(Json::object({{"event", std::string(event_name(event.kind))},
                                 {"t", static_cast<double>(event.time_ns) / 1e9},
                                 {"text", event.text}}));
    }
    Json measures = Json::object();
    for (const Measure& measure : kMeasures) measures.set(measure.key, measure.value(run));
    return Json::object({{"name", run.name},
                         {"folder", run.folder},
                         {"kind", run.info.kind},
                         {"device", run.info.device},
                         {"simulated", run.info.simulated},
                         {"command", Json::array_of(run.info.command)},
                         {"started_wall_ns", run.info.started_wall_ns},
                         {"machine", run.info.machine},
                         {"seconds", run.seconds},
                         {"steps", run.steps},
                         {"samples", run.samples},
                         {"measures", measures},
                         {"split_percent", split},
                         {"gpus", gpus},
                         {"rate", curve_json(run.rate)},
                         {"step_busy", curve_json(run.step_busy)},
                         {"loss_by_time", curve_json(run.loss_by_time)},
                         {"loss_by_samples", curve_json(run.loss_by_samples)},
                         {"events", events},
                         {"events_left_out", run.events_left_out},
                         {"notes", Json::array_of(run.notes)},
                         {"diagnosis", to_json(run.diagnosis, 5, false)}});
}

// "-0 %" would suggest a direction that was not measured.
std::string percent_text(double percent) {
    std::string out = fmt::format("{:+.0f} %", percent);
    return out == "-0 %" || out == "+0 %" ? "0 %" : out;
}

Json rows_json(const std::vector<ReportRow>& rows) {
    Json out = Json::array();
    for (const ReportRow& row : rows) {
        out.add(Json::object({{"key", row.key},
                              {"name", row.name},
                              {"cells", Json::array_of(row.cells)},
                              {"change", row.change}}));
    }
    return out;
}

}  // namespace

std::vector<ReportRow> report_rows(const ReportInput& input) {
    std::vector<ReportRow> rows;
    for (const Measure& measure : kMeasures) {
        ReportRow row{.key = measure.key, .name = translated(measure.name, input.language)};
        bool any = false;
        for (const RunView& run : input.runs) {
            row.cells.push_back(measure.text(run));
            any = any || row.cells.back() != "-";
        }
        if (!any) continue;
        auto before = measure.value(input.runs.front()), after = measure.value(input.runs.back());
        // The change of a share is in points: from 40 to 60 % it is 20 points, not +50 %.
        bool is_share = row.key.ends_with("_percent");
        if (input.runs.size() > 1 && before && after && is_share)
            row.change =
                translated(fmt::format("{:+.1f} points", *after - *before), input.language);
        else if (input.runs.size() > 1 && before && after && *before != 0)
            row.change = percent_text(100 * (*after / *before - 1));
        rows.push_back(std::move(row));
    }
    add_scaling(input, rows);
    return rows;
}

std::vector<ReportRow> differing_settings(const ReportInput& input) {
    std::vector<std::map<std::string, std::string>> all;
    std::map<std::string, int> keys;
    for (const RunView& run : input.runs) {
        all.push_back(settings_of(run));
        for (const auto& [key, value] : all.back()) ++keys[key];
    }
    std::vector<ReportRow> rows;
    for (const auto& [key, count] : keys) {
        ReportRow row{.key = key, .name = key};
        for (const auto& settings : all) {
            auto found = settings.find(key);
            row.cells.push_back(found == settings.end() ? "-" : found->second);
        }
        bool differs = std::ranges::any_of(
            row.cells, [&](const std::string& cell) { return cell != row.cells[0]; });
        if (differs) rows.push_back(std::move(row));
    }
    return rows;
}

namespace {

// True if the ranges of two rates do not overlap and the rates differ by at least 1 %.
bool are_apart(const RunRate& a, const RunRate& b) {
    constexpr double kLeast = 0.01;
    return (a.high < b.low || b.high < a.low) && std::abs(b.rate - a.rate) >= kLeast * a.rate;
}

// Returns the result of the proof of the search to which the runs belong.
std::string proof_tail(const ReportInput& input) {
    if (!input.proof) return "";
    const Json& proof = *input.proof;
    std::string verdict = proof["verdict"].string().value_or("not proven");
    if (!proof["interval"].is_array() || proof["interval"].items().size() != 2)
        return fmt::format("; the proof of its search: {}", verdict);
    double low = proof["interval"].items()[0].number().value_or(0);
    double high = proof["interval"].items()[1].number().value_or(0);
    double ratio = proof["ratio"].number().value_or(0);
    return fmt::format("; the proof of its search: {}, {:.2f} times [{:.2f}, {:.2f}]", verdict,
                       ratio, low, high);
}

std::string english_verdict(const ReportInput& input) {
    const RunView& first = input.runs.front();
    const RunView& last = input.runs.back();
    if (input.runs.size() == 1)
        return first.diagnosis.verdict.empty() ? "one run" : first.diagnosis.verdict;
    if (!first.samples_per_second || !last.samples_per_second)
        return "the rate of one run is unknown";
    const RunRate& a = *first.samples_per_second;
    const RunRate& b = *last.samples_per_second;
    double ratio = a.rate > 0 ? b.rate / a.rate : 0;
    if (!are_apart(a, b))
        return fmt::format("no difference seen: {:.2f} times, and the ranges of the runs overlap",
                           ratio);
    return fmt::format("{}: {:.2f} times the rate ({} -> {} samples/s)",
                       ratio > 1 ? "faster" : "slower", ratio, rate_text(a.rate),
                       rate_text(b.rate));
}

}  // namespace

std::string report_verdict(const ReportInput& input) {
    bool simulated =
        std::ranges::any_of(input.runs, [](const RunView& run) { return run.info.simulated; });
    return translated(
        english_verdict(input) + (simulated ? " (simulated device)" : "") + proof_tail(input),
        input.language);
}

Regression regression(const ReportInput& input, double limit_percent) {
    if (input.runs.size() < 2) {
        throw UserError({.found = "--fail-on needs two runs",
                         .expected = "two runs, the earlier one first",
                         .fix = "saturate report BEFORE AFTER --fail-on 10"});
    }
    const RunView& first = input.runs.front();
    const RunView& last = input.runs.back();
    for (const RunView* run : {&first, &last}) {
        if (run->samples_per_second && run->samples_per_second->rate > 0) continue;
        throw UserError({.where = {run->folder},
                         .found = "no rate: its steps have no sample counts, or there are no steps",
                         .expected = "a run with a rate that --fail-on can compare"});
    }
    const RunRate& a = *first.samples_per_second;
    const RunRate& b = *last.samples_per_second;
    Regression out{.slower_percent = 100 * (1 - b.rate / a.rate), .limit_percent = limit_percent};
    bool is_apart = are_apart(a, b);
    out.fails = out.slower_percent >= limit_percent && is_apart;
    out.text = fmt::format(
        "{:.1f} % {} than {} ({} -> {} samples/s; fails from {:g} % slower){}",
        std::abs(out.slower_percent), out.slower_percent >= 0 ? "slower" : "faster", first.name,
        rate_text(a.rate), rate_text(b.rate), limit_percent,
        out.slower_percent >= limit_percent && !is_apart ? ": within the variation of each run"
                                                         : "");
    return out;
}

Json to_json(const Regression& regression) {
    return Json::object({{"slower_percent", regression.slower_percent},
                         {"limit_percent", regression.limit_percent},
                         {"fails", regression.fails},
                         {"text", regression.text}});
}

std::optional<Json> proof_of(const std::vector<std::string>& folders) {
    std::vector<std::filesystem::path> places(folders.begin(), folders.end());
    std::set<std::filesystem::path> around;
    for (const std::string& folder : folders) {
        std::error_code ignored;
        around.insert(std::filesystem::weakly_canonical(folder, ignored).parent_path());
    }
    if (around.size() == 1) places.push_back(*around.begin());
    constexpr std::uint64_t kMost = 1 << 20;
    for (const std::filesystem::path& place : places) {
        std::filesystem::path file = place / "proof.json";
        std::error_code ignored;
        if (!std::filesystem::is_regular_file(file, ignored)) continue;
        try {
            return Json::parse(read_file(file, kMost, "a proof"), file.string());
        } catch (const Failure&) {
            continue;  // incomplete, or not one of our files
        }
    }
    return std::nullopt;
}

Json report_json(const ReportInput& input) {
    Json runs = Json::array();
    for (const RunView& run : input.runs) runs.add(run_json(run));
    Json out = Json::object({{"schema", 1},
                             {"verdict", report_verdict(input)},
                             {"language", input.language == Language::chinese ? "zh" : "en"},
                             {"table", rows_json(report_rows(input))},
                             {"settings", rows_json(differing_settings(input))},
                             {"runs", runs}});
    if (input.proof) out.set("proof", *input.proof);
    return out;
}

std::string report_markdown(const ReportInput& input) {
    auto cell = [](std::string text) {
        for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
            text.insert(at, "\\");
        return text;
    };
    std::string head = "|  |", rule = "|---|";
    for (const RunView& run : input.runs) {
        head += fmt::format(" {} |", cell(run.name));
        rule += "---|";
    }
    bool several = input.runs.size() > 1;
    if (several) {
        head += fmt::format(" {} |", translated("change", input.language));
        rule += "---|";
    }
    auto table = [&](const std::vector<ReportRow>& rows) {
        std::string out = head + "\n" + rule + "\n";
        for (const ReportRow& row : rows) {
            out += fmt::format("| {} |", cell(row.name));
            for (const std::string& text : row.cells) out += fmt::format(" {} |", cell(text));
            if (several) out += fmt::format(" {} |", row.change);
            out += "\n";
        }
        return out;
    };
    std::string out = fmt::format("**{}**\n\n{}", report_verdict(input), table(report_rows(input)));
    std::vector<ReportRow> settings = differing_settings(input);
    if (several && !settings.empty()) out += "\n" + table(settings);
    std::vector<Finding> findings = input.runs.back().diagnosis.shown(5, false);
    if (!findings.empty()) out += "\n";
    for (const Finding& finding : findings)
        out += translated(fmt::format("- {} {}: {}. {}\n", finding.id, finding.name(),
                                      finding.evidence, finding.fix_text()),
                          input.language);
    return out;
}

}  // namespace saturate
