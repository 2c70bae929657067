// SPDX-License-Identifier: Apache-2.0
#include "report/gpu_bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/figures.h"
#include "base/text.h"
#include "remedies/catalogue.h"
#include "report/text_table.h"
#include "report/timeline_html.h"

namespace saturate {

namespace {

std::vector<std::string> columns() {
    return {"job",
            "before",
            "after",
            "speed-up",
            "diagnose predicted",
            "its fixes gained",
            "simulated, off by"};
}

std::string rate_of(const Measured& rate) {
    return fmt::format("{} (n={}, {}..{})", rate_text(rate.median), rate.n, rate_text(rate.low),
                       rate_text(rate.high));
}

std::string off_text(const std::optional<SimulatedRate>& rate) {
    return rate ? fmt::format("{:+.0f} %", rate->off_percent()) : std::string("-");
}

std::vector<std::string> row_of(const GpuBenchJob& job) {
    std::string speed_up = job.without_proof;
    if (job.proof)
        speed_up =
            fmt::format("{}: {:.2f} times [{:.2f}, {:.2f}]", verdict_name(job.proof->verdict),
                        job.proof->ratio, job.proof->interval_low, job.proof->interval_high);
    return {job.name,
            job.proof ? rate_of(job.proof->before) : "-",
            job.proof ? rate_of(job.proof->after) : "-",
            speed_up,
            job.foretold ? fmt::format("{:.2f} times ({:.2f} to {:.2f})", job.foretold->likely,
                                       job.foretold->low, job.foretold->high)
                         : "-",
            job.named.settings.empty()
                ? "-"
                : fmt::format("{:.2f} times ({})", job.named.ratio, join(job.named.settings, ", ")),
            job.before || job.after
                ? fmt::format("{} before, {} after", off_text(job.before), off_text(job.after))
                : "-"};
}

std::string selftest_line(const GpuBench& bench) {
    auto passed = bench.selftest["checks_passed"].integer();
    if (!passed) return "selftest did not run";
    return fmt::format("selftest: {} of {} checks passed", *passed,
                       bench.selftest["checks"].items().size());
}

std::string simulation_line(const GpuBench& bench) {
    if (bench.is_simulated) return "the device is simulated: no figure here comes from a real card";
    if (bench.card.empty()) return "nothing is simulated: this device is not in the GPU table";
    return fmt::format("simulated: sim:{}, {}", bench.card,
                       bench.calibrated ? "with the rates measured here"
                                        : "with the table's rates (--calibrate measures them)");
}

Json rate_json(const std::optional<SimulatedRate>& rate) {
    if (!rate) return {};
    return Json::object({{"samples_per_second", rate->real},
                         {"simulated_samples_per_second", rate->simulated},
                         {"off_percent", rate->off_percent()}});
}

}  // namespace

NamedFixes named_fixes(const Diagnosis& diagnosis, const SearchAnswer& search) {
    NamedFixes out;
    std::vector<Finding> findings = diagnosis.shown(diagnosis.findings.size(), false);
    for (const KeptSetting& kept : kept_settings(search)) {
        const Remedy* remedy = find_remedy(kept.key);
        if (!remedy || !kept.ratio || kept.key == "batch_size") continue;
        if (std::ranges::none_of(findings,
                                 [&](const Finding& one) { return remedy->relieves(one.id); }))
            continue;
        out.ratio *= *kept.ratio;
        out.settings.push_back(kept.key);
    }
    return out;
}

Json to_json(const GpuBench& bench) {
    Json jobs = Json::array();
    for (const GpuBenchJob& job : bench.jobs) {
        Json settings = Json::object();
        for (const auto& [key, value] : job.settings) settings.set(key, value);
        jobs.add(Json::object(
            {{"job", job.name},
             {"proof", job.proof ? to_json(*job.proof) : Json()},
             {"without_proof", job.without_proof},
             {"foretold", job.foretold ? Json::object({{"low", job.foretold->low},
                                                       {"likely", job.foretold->likely},
                                                       {"high", job.foretold->high}})
                                       : Json()},
             {"named", job.named.settings.empty()
                           ? Json()
                           : Json::object({{"ratio", job.named.ratio},
                                           {"settings", Json::array_of(job.named.settings)}})},
             {"settings", settings},
             {"simulated", Json::object({{"before", rate_json(job.before)},
                                         {"after", rate_json(job.after)}})}}));
    }
    return Json::object({{"schema", 1},
                         {"version", bench.version},
                         {"device", bench.device},
                         {"simulated", bench.is_simulated},
                         {"card", bench.card.empty() ? Json() : Json(bench.card)},
                         {"calibrated", bench.calibrated},
                         {"seconds", bench.seconds},
                         {"selftest", bench.selftest},
                         {"jobs", jobs}});
}

std::string gpu_bench_text(const GpuBench& bench) {
    TextTable table(columns());
    for (const GpuBenchJob& job : bench.jobs) table.add(row_of(job));
    return fmt::format("{} in {:.0f} s, samples/s\n\n{}\n{}\n{}\n", bench.device, bench.seconds,
                       table.text(), selftest_line(bench), simulation_line(bench));
}

std::string gpu_bench_page(const GpuBench& bench) {
    std::string rows;
    auto add = [&rows](const std::vector<std::string>& cells, const char* kind) {
        rows += "<tr>";
        for (const std::string& cell : cells)
            rows += fmt::format("<{0}>{1}</{0}>", kind, html_text(cell));
        rows += "</tr>\n";
    };
    add(columns(), "th");
    for (const GpuBenchJob& job : bench.jobs) add(row_of(job), "td");
    std::string settings;
    for (const GpuBenchJob& job : bench.jobs) {
        std::vector<std::string> values;
        for (const auto& [key, value] : job.settings) values.push_back(key + "=" + value);
        if (!values.empty())
            settings += fmt::format("<li>{}: {}</li>\n", html_text(job.name),
                                    html_text(join(values, ", ")));
    }
    return fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>saturate bench gpu"
        "</title>\n<style>body{{font:15px/1.5 sans-serif;margin:2em;max-width:75em}}"
        "table{{border-collapse:collapse}}th,td{{border:1px solid #999;padding:.3em .6em;"
        "text-align:left}}</style></head>\n<body><h1>{}</h1>\n<p>saturate {}, {:.0f} s. Samples "
        "per second before and after, measured in turns; the speed-up with its 99 % interval.</p>\n"
        "<table>\n{}</table>\n<p>{}<br>{}</p>\n{}</body></html>\n",
        html_text(bench.device), html_text(bench.version), bench.seconds, rows,
        html_text(selftest_line(bench)), html_text(simulation_line(bench)),
        settings.empty() ? ""
                         : fmt::format("<h2>What was changed</h2>\n<ul>\n{}</ul>\n", settings));
}

}  // namespace saturate
