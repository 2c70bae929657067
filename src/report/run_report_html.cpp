// SPDX-License-Identifier: Apache-2.0
// The page: text and tables from here, so that it reads without a script; the charts are drawn by
// report_script.js from the JSON that it carries.
#include <fmt/format.h>

#include "report/finding_words.h"
#include "report/run_list_html.h"
#include "report/run_report.h"
#include "report/timeline_html.h"

namespace saturate {

std::string_view embedded_report_script();
std::string_view embedded_report_style();
std::string_view embedded_live_script();

namespace {

struct Words {
    const char* title;
    const char* comparison;
    const char* measured;
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
                         "Measured",
                         "change",
                         "Where the step time went",
                         "Over time",
                         "Loss",
                         "Findings",
                         "Nothing that would gain 3 % or more.",
                         "Settings that differ",
                         "Move the pointer, or use the arrow keys on a chart, to read values."};
constexpr Words kChinese{"saturate 报告",
                         "对比",
                         "测量结果",
                         "变化",
                         "步时去向",
                         "随时间变化",
                         "损失",
                         "发现",
                         "没有收益达到 3% 的项目。",
                         "不同的设置",
                         "移动指针，或在图上用方向键，可读取数值。"};

std::string table_html(const std::vector<ReportRow>& rows, const ReportInput& input,
                       const Words& words, bool with_change) {
    std::string out = "<table>\n<thead><tr><th scope=\"col\"></th>";
    for (const RunView& run : input.runs) {
        out += fmt::format("<th scope=\"col\">{}{}</th>", html_text(run.name),
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
        out += fmt::format("<h3>{}</h3>\n", html_text(run.name));
        std::vector<Finding> findings = run.diagnosis.shown(5, false);
        if (findings.empty()) out += fmt::format("<p>{}</p>\n", words.nothing);
        for (const Finding& finding : findings) {
            FindingWords said = words_of(finding, input.language);
            out += fmt::format("<section class=\"finding\"><h4>{} {}</h4>", html_text(finding.id),
                               html_text(said.name));
            if (!said.seen.empty()) out += fmt::format("<p>{}</p>", html_text(said.seen));
            out += fmt::format("<p{}>{}.</p><p>{}</p></section>\n",
                               said.seen.empty() ? "" : " class=\"quiet\" lang=\"en\"",
                               html_text(said.evidence), html_text(said.fix));
        }
        for (const std::string& note : run.notes)
            out += fmt::format("<p class=\"quiet\" lang=\"en\">{}</p>\n", html_text(note));
    }
    return out;
}

// Inside a script "</script>" would end the data and "<!--" hide its end.
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

// Links, and what state the page is in.
std::string nav_html(const std::string& language, const LivePage& live) {
    bool zh = language == "zh";
    std::string out = fmt::format("<nav aria-label=\"{}\"><a href=\"runs\">{}</a>",
                                  zh ? "页面" : "pages", zh ? "所有运行" : "All runs");
    if (!live.query.empty())
        out +=
            fmt::format(" <a href=\"report.html{0}\">{1}</a> <a href=\"report.json{0}\">JSON</a>",
                        html_text(live.query), zh ? "下载报告" : "Download the report");
    std::string states;
    for (const std::string& state : live.states)
        states += (states.empty() ? "" : ", ") + state_text(state, language);
    return out + fmt::format(
                     " <span class=\"state\">{}</span> <span id=\"live\" "
                     "role=\"status\"></span></nav>\n",
                     html_text(states));
}

}  // namespace

std::string page_start(const std::string& language, std::string_view title, const LivePage* live) {
    std::string out = fmt::format(
        "<!doctype html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>\n{}</style>\n"
        "</head>\n<body>\n",
        language == "zh" ? "zh-CN" : "en", title, embedded_report_style());
    if (!live) return out + "<main>\n";
    return out + fmt::format("<main data-version=\"{}\" data-events=\"{}\">\n{}",
                             html_text(live->version), html_text(live->events),
                             nav_html(language, *live));
}

std::string page_end(const LivePage* live) {
    // Also where there is no chart yet: a live page may be given one.
    std::string out = fmt::format("</main>\n<script>\n{}</script>\n", embedded_report_script());
    if (live) out += fmt::format("<script>\n{}</script>\n", embedded_live_script());
    return out + "</body>\n</html>\n";
}

std::string report_html(const ReportInput& input, const LivePage* live) {
    const Words& words = input.language == "zh" ? kChinese : kEnglish;
    bool several = input.runs.size() > 1;
    std::string out = page_start(input.language, words.title, live);
    out += fmt::format("<h1>{}</h1>\n", html_text(report_verdict(input)));
    out += fmt::format("<h2>{}</h2>\n{}", several ? words.comparison : words.measured,
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
    // The data is inside <main>, so that a live page takes it over with the rest.
    out += fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n",
                       safe_json(report_json(input)));
    return out + page_end(live);
}

}  // namespace saturate
