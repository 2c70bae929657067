// SPDX-License-Identifier: Apache-2.0
// The page: text and tables from here, so that it reads without a script; the charts are drawn by
// report_script.js from the JSON that it carries.
#include <fmt/format.h>

#include "report/run_report.h"
#include "report/timeline_html.h"

namespace saturate {

std::string_view embedded_report_script();
std::string_view embedded_report_style();

namespace {

struct Words {
    const char* title;
    const char* comparison;
    const char* change;
    const char* where;
    const char* over_time;
    const char* loss;
    const char* findings;
    const char* nothing;
    const char* settings;
    const char* hint;
};

constexpr Words kEnglish{"saturate report",
                         "Comparison",
                         "change",
                         "Where the step time went",
                         "Over time",
                         "Loss",
                         "Findings",
                         "Nothing that would gain 3 % or more.",
                         "Settings that differ",
                         "Move the pointer, or use the arrow keys on a chart, to read values."};
constexpr Words kChinese{"saturate 报告", "对比",
                         "变化",          "步时去向",
                         "随时间变化",    "损失",
                         "发现",          "没有收益达到 3% 的项目。",
                         "不同的设置",    "移动指针，或在图上用方向键，可读取数值。"};

std::string table_html(const std::vector<ReportRow>& rows, const ReportInput& input,
                       const Words& words, bool with_change) {
    std::string out = "<table>\n<thead><tr><th scope=\"col\"></th>";
    for (const RunView& run : input.runs) {
        std::string name = std::filesystem::path(run.folder).filename().string();
        out += fmt::format("<th scope=\"col\">{}{}</th>", html_text(name),
                           run.info.simulated ? " (simulated)" : "");
    }
    if (with_change) out += fmt::format("<th scope=\"col\">{}</th>", words.change);
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

std::string findings_html(const ReportInput& input, const Words& words) {
    std::string out;
    for (const RunView& run : input.runs) {
        std::string name = std::filesystem::path(run.folder).filename().string();
        out += fmt::format("<h3>{}</h3>\n", html_text(name));
        std::vector<Finding> findings = run.diagnosis.shown(5, false);
        if (findings.empty()) out += fmt::format("<p>{}</p>\n", words.nothing);
        for (const Finding& finding : findings) {
            out += fmt::format(
                "<section class=\"finding\"><h4>{} {}</h4><p>{}.</p><p>{}</p></section>\n",
                html_text(finding.id), html_text(finding.name()), html_text(finding.evidence),
                html_text(finding.fix_text()));
        }
        for (const std::string& note : run.notes)
            out += fmt::format("<p class=\"quiet\">{}</p>\n", html_text(note));
    }
    return out;
}

// "</script>" inside the data would end it.
std::string safe_json(const Json& json) {
    std::string text = json.line();
    for (std::size_t at = 0; (at = text.find("</", at)) != std::string::npos; at += 3)
        text.replace(at, 2, "<\\/");
    return text;
}

}  // namespace

std::string report_html(const ReportInput& input) {
    const Words& words = input.language == "zh" ? kChinese : kEnglish;
    bool several = input.runs.size() > 1;
    std::string out = fmt::format(
        "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\">\n<title>{}</title>\n"
        "<style>\n{}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n",
        input.language, words.title, embedded_report_style(), html_text(report_verdict(input)));
    out += fmt::format("<h2>{}</h2>\n{}", words.comparison,
                       table_html(report_rows(input), input, words, several));
    out += fmt::format("<h2>{}</h2>\n<div id=\"split\"></div>\n", words.where);
    out += fmt::format("<h2>{}</h2>\n<p class=\"quiet\">{}</p>\n<div id=\"charts\"></div>\n",
                       words.over_time, words.hint);
    out += fmt::format("<h2>{}</h2>\n<div id=\"loss\"></div>\n", words.loss);
    out += fmt::format("<h2>{}</h2>\n{}", words.findings, findings_html(input, words));
    std::vector<ReportRow> settings = differing_settings(input);
    if (several && !settings.empty())
        out += fmt::format("<h2>{}</h2>\n{}", words.settings,
                           table_html(settings, input, words, false));
    out += fmt::format(
        "</main>\n<script type=\"application/json\" "
        "id=\"data\">{}</script>\n<script>\n{}</script>\n"
        "</body>\n</html>\n",
        safe_json(report_json(input)), embedded_report_script());
    return out;
}

}  // namespace saturate
