// SPDX-License-Identifier: Apache-2.0
// The HTML page of a report. Text and tables are made here, so that it is readable without
// JavaScript; report_script.js draws the charts from the JSON in the page.
#include <fmt/format.h>

#include <algorithm>

#include "report/run_about.h"
#include "report/run_list_html.h"
#include "report/run_report.h"
#include "report/timeline_html.h"

namespace saturate {

std::string_view embedded_report_script();
std::string_view embedded_report_style();
std::string_view embedded_live_script();

namespace {

std::string table_html(const std::vector<ReportRow>& rows, const ReportInput& input,
                       bool with_change) {
    std::string out = "<table>\n<thead><tr><th scope=\"col\"></th>";
    for (const RunView& run : input.runs) {
        out += fmt::format("<th scope=\"col\">{}{}</th>", html_text(run.name),
                           run.info.simulated ? translated(" (simulated)", input.language) : "");
    }
    if (with_change)
        out += fmt::format("<th scope=\"col\">{}</th>", translated("change", input.language));
    out += "</tr></thead>\n<tbody>\n";
    for (const ReportRow& row : rows) {
        out += fmt::format("<tr><th scope=\"row\">{}</th>", html_text(row.name));
        for (const std::string& cell : row.cells)
            out += fmt::format("<td>{}</td>", html_text(cell));
        if (with_change) out += fmt::format("<td>{}</td>", html_text(row.change));
        out += "</tr>\n";
    }
    return out + "</tbody>\n</table>\n";
}

std::string findings_html(const ReportInput& input) {
    std::string out;
    for (const RunView& run : input.runs) {
        out += fmt::format("<h3>{}</h3>\n", html_text(run.name));
        std::vector<Finding> findings = run.diagnosis.shown(5, false);
        if (findings.empty())
            out += fmt::format("<p>{}</p>\n",
                               translated("Nothing that would gain 3 % or more.", input.language));
        for (const Finding& finding : findings) {
            auto say = [&](std::string_view english) {
                return html_text(translated(english, input.language));
            };
            out += fmt::format("<section class=\"finding\"><h4>{} {}</h4><p>{}</p>",
                               html_text(finding.id), say(finding.name()),
                               say(finding.evidence + "."));
            if (!finding.where.empty())
                out += fmt::format("<p><code>{}</code></p>", html_text(finding.where));
            out += fmt::format("<p><span class=\"quiet\">{}</span> {}</p></section>\n", say("Fix"),
                               say(finding.fix_text()));
        }
        for (const std::string& note : run.notes)
            out += fmt::format("<p class=\"quiet\">{}</p>\n",
                               html_text(translated(note, input.language)));
    }
    return out;
}

bool has_points(const Curve& curve) { return !curve.buckets().empty(); }

bool has_charts(const RunView& run) {
    return has_points(run.rate) || has_points(run.step_busy) ||
           std::ranges::any_of(run.gpus, [](const GpuCurves& gpu) {
               return has_points(gpu.utilisation) || has_points(gpu.power) ||
                      has_points(gpu.memory) || has_points(gpu.temperature);
           });
}

// Returns a part of the page that the script fills, or "" if no run has data for it.
std::string chart_part(const ReportInput& input, bool (*has)(const RunView&), std::string_view head,
                       std::string_view inside) {
    if (std::ranges::none_of(input.runs, has)) return "";
    return fmt::format("<h2>{}</h2>\n{}\n", translated(head, input.language), inside);
}

// Escapes "<": inside a script, "</script>" would end the data and "<!--" would hide its end.
std::string safe_json(const Json& json) {
    std::string out;
    for (char c : json.line()) {
        if (c == '<')
            out += "\\u003c";
        else
            out += c;
    }
    return out;
}

// Returns the links and the state of the page.
std::string nav_html(Language language, const LivePage& live) {
    std::string out = fmt::format("<nav aria-label=\"{}\"><a href=\"runs\">{}</a>",
                                  translated("pages", language), translated("All runs", language));
    if (!live.query.empty())
        out +=
            fmt::format(" <a href=\"report.html{0}\">{1}</a> <a href=\"report.json{0}\">JSON</a>",
                        html_text(live.query), translated("Download the report", language));
    std::string states;
    for (const std::string& state : live.states)
        states += (states.empty() ? "" : ", ") + state_text(state, language);
    return out + fmt::format(
                     " <span class=\"state\">{}</span> <span id=\"live\" "
                     "role=\"status\"></span></nav>\n",
                     html_text(states));
}

}  // namespace

std::string page_start(Language language, std::string_view title, const LivePage* live) {
    std::string out = fmt::format(
        "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>\n{}</style>\n"
        "</head>\n<body>\n",
        language == Language::chinese ? "zh-CN" : "en", title, embedded_report_style());
    if (!live) return out + "<main>\n";
    return out + fmt::format("<main data-version=\"{}\" data-events=\"{}\">\n{}",
                             html_text(live->version), html_text(live->events),
                             nav_html(language, *live));
}

std::string page_end(const LivePage* live) {
    // Needed even if there is no chart yet: a live page may get one later.
    std::string out = fmt::format("</main>\n<script>\n{}</script>\n", embedded_report_script());
    if (live) out += fmt::format("<script>\n{}</script>\n", embedded_live_script());
    return out + "</body>\n</html>\n";
}

std::string report_html(const ReportInput& input, const LivePage* live) {
    auto say = [&](std::string_view english) { return translated(english, input.language); };
    bool several = input.runs.size() > 1;
    std::string out = page_start(input.language, say("saturate report"), live);
    out += fmt::format("<h1>{}</h1>\n", html_text(report_verdict(input)));
    out += fmt::format("<h2>{}</h2>\n{}", several ? say("Comparison") : say("Measured"),
                       table_html(report_rows(input), input, several));
    out += chart_part(
        input, [](const RunView& run) { return !run.split.empty(); }, "Where the step time went",
        "<div id=\"split\"></div>");
    out += chart_part(
        input, has_charts, "Over time",
        fmt::format("<p class=\"quiet\">{}</p>\n<div id=\"charts\"></div>",
                    say("Move the pointer, or use the arrow keys on a chart, to read values.")));
    out += chart_part(
        input, [](const RunView& run) { return has_points(run.loss_by_time); }, "Loss",
        "<div id=\"loss\"></div>");
    out += fmt::format("<h2>{}</h2>\n{}", say("Findings"), findings_html(input));
    std::vector<ReportRow> settings = differing_settings(input);
    if (several && !settings.empty())
        out += fmt::format("<h2>{}</h2>\n{}", say("Settings that differ"),
                           table_html(settings, input, false));
    out += fmt::format("<h2>{}</h2>\n<div class=\"about\">{}</div>\n",
                       several ? say("The runs") : say("The run"),
                       table_html(about_rows(input), input, false));
    // The data is inside <main>, so that a live page updates it together with the rest.
    out += fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n",
                       safe_json(report_json(input)));
    return out + page_end(live);
}

}  // namespace saturate
