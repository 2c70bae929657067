// SPDX-License-Identifier: Apache-2.0
#include "report/run_list_html.h"

#include <fmt/format.h>

#include <ctime>

#include "base/text.h"
#include "report/http_guard.h"
#include "report/run_report.h"
#include "report/timeline_html.h"
#include "report/tuning_text.h"

namespace saturate {

namespace {

std::string time_text(std::int64_t wall_ns) {
    if (wall_ns <= 0) return "-";
    std::time_t seconds = wall_ns / 1'000'000'000;
    std::tm parts{};
    ::localtime_r(&seconds, &parts);
    char text[64];
    return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts)};
}

std::string length_text(const std::optional<double>& seconds) {
    if (!seconds) return "-";
    if (*seconds >= 7200) return fmt::format("{:.1f} h", *seconds / 3600);
    return *seconds >= 120 ? fmt::format("{:.1f} min", *seconds / 60)
                           : fmt::format("{:.1f} s", *seconds);
}

std::string row_html(const ShelfRun& run, const std::string& language, std::size_t number) {
    std::string name = run.id == "." ? run_folder_name(run.folder) : run.id;
    return fmt::format(
        "<tr><td><input type=\"checkbox\" name=\"id\" value=\"{0}\" id=\"run{1}\"></td>"
        "<th scope=\"row\"><label for=\"run{1}\" class=\"hidden\">{2}</label>"
        "<a href=\"run?id={3}\">{4}</a></th>"
        "<td>{5}{6}</td><td>{7}</td><td>{8}</td><td>{9}</td><td>{10}</td><td>{11}</td></tr>\n",
        html_text(run.id), number,
        language == "zh" ? "选择 " + html_text(name) : "choose " + html_text(name),
        url_encoded(run.id), html_text(name), html_text(run.kind.empty() ? "-" : run.kind),
        run.simulated ? (language == "zh" ? "（模拟）" : " (simulated)") : "",
        html_text(state_text(run.state, language)), time_text(run.started_wall_ns),
        length_text(run.seconds), run.samples_per_second ? rate_text(*run.samples_per_second) : "-",
        run.busy_percent ? fmt::format("{:.0f} %", *run.busy_percent) : "-");
}

}  // namespace

std::string state_text(const std::string& state, const std::string& language) {
    if (language != "zh") return state == "stopped" ? "stopped without a summary" : state;
    if (state == "running") return "运行中";
    if (state == "done") return "已完成";
    if (state == "interrupted") return "已中断";
    if (state == "failed") return "失败";
    return "已停止，没有汇总";
}

std::string run_list_html(const Listing& listing, const std::string& language,
                          const std::string& version) {
    bool zh = language == "zh";
    LivePage live{.version = version, .events = "events?of=list", .query = "", .states = {}};
    std::string out = page_start(language, zh ? "saturate 运行记录" : "saturate runs", &live);
    out += fmt::format("<h1>{}</h1>\n", zh ? "运行记录" : "Runs");
    if (listing.runs.empty()) {
        out += fmt::format("<p>{}</p>\n", zh ? "还没有运行记录。" : "No run here yet.");
        return out + page_end(&live);
    }
    out += fmt::format(
        "<p class=\"quiet\">{}</p>\n<form action=\"run\" method=\"get\">\n"
        "<input type=\"hidden\" name=\"order\" value=\"time\">\n",
        zh ? "点名称查看一次运行；勾选两个或更多再点“对比”，先开始的为“之前”。"
           : "A name opens one run; choose two or more and compare them. The one "
             "that began first is \"before\".");
    const char* heads_en[] = {"", "run", "kind", "state", "began", "length", "samples/s", "busy"};
    const char* heads_zh[] = {"", "运行", "类型", "状态", "开始", "时长", "样本/秒", "利用率"};
    out += "<table class=\"list\">\n<thead><tr>";
    for (const char* head : zh ? heads_zh : heads_en)
        out += *head ? fmt::format("<th scope=\"col\">{}</th>", head) : std::string("<td></td>");
    out += "</tr></thead>\n<tbody>\n";
    for (std::size_t i = 0; i < listing.runs.size(); ++i)
        out += row_html(listing.runs[i], language, i);
    out += fmt::format("</tbody>\n</table>\n<p><button type=\"submit\">{}</button></p>\n</form>\n",
                       zh ? "对比" : "Compare");
    if (listing.is_cut)
        out += fmt::format("<p class=\"quiet\">{}</p>\n",
                           zh ? fmt::format("只列出 {} 个。", RunShelf::kMostRuns)
                              : fmt::format("There are more; {} are listed.", RunShelf::kMostRuns));
    return out + page_end(&live);
}

std::string no_run_html(const std::string& language, const std::string& version) {
    bool zh = language == "zh";
    LivePage live{.version = version, .events = "events?of=newest", .query = "", .states = {}};
    return page_start(language, zh ? "saturate 实时" : "saturate live", &live) +
           fmt::format("<h1>{}</h1>\n<p>{}</p>\n", zh ? "等待运行开始" : "Waiting for a run",
                       zh ? "第一个运行记录出现后，本页会自动显示。"
                          : "This page shows it as soon as its record is there.") +
           page_end(&live);
}

}  // namespace saturate
