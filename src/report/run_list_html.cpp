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

std::string row_html(const ShelfRun& run, Language language, std::size_t number) {
    std::string name = run.id == "." ? run_folder_name(run.folder) : run.id;
    return fmt::format(
        "<tr><td><input type=\"checkbox\" name=\"id\" value=\"{0}\" id=\"run{1}\"></td>"
        "<th scope=\"row\"><label for=\"run{1}\" class=\"hidden\">{2}</label>"
        "<a href=\"run?id={3}\">{4}</a></th>"
        "<td>{5}{6}</td><td>{7}</td><td>{8}</td><td>{9}</td><td>{10}</td><td>{11}</td></tr>\n",
        html_text(run.id), number, html_text(translated(fmt::format("choose {}", name), language)),
        url_encoded(run.id), html_text(name), html_text(run.kind.empty() ? "-" : run.kind),
        run.simulated ? translated(" (simulated)", language) : "",
        html_text(state_text(run.state, language)), time_text(run.started_wall_ns),
        length_text(run.seconds), run.samples_per_second ? rate_text(*run.samples_per_second) : "-",
        run.busy_percent ? fmt::format("{:.0f} %", *run.busy_percent) : "-");
}

}  // namespace

std::string state_text(const std::string& state, Language language) {
    return translated(state == "stopped" ? "stopped without a summary" : state, language);
}

std::string run_list_html(const Listing& listing, Language language, const std::string& version) {
    LivePage live{.version = version, .events = "events?of=list", .query = "", .states = {}};
    std::string out = page_start(language, translated("saturate runs", language), &live);
    out += fmt::format("<h1>{}</h1>\n", translated("Runs", language));
    if (listing.runs.empty()) {
        out += fmt::format("<p>{}</p>\n", translated("No run here yet.", language));
        return out + page_end(&live);
    }
    out += fmt::format(
        "<p class=\"quiet\">{}</p>\n<form action=\"run\" method=\"get\">\n"
        "<input type=\"hidden\" name=\"order\" value=\"time\">\n",
        translated("A name opens one run; choose two or more and compare them. The one "
                   "that began first is \"before\".",
                   language));
    const char* heads[] = {"", "run", "kind", "state", "began", "length", "samples/s", "busy"};
    out += "<table class=\"list\">\n<thead><tr>";
    for (const char* head : heads)
        out += *head ? fmt::format("<th scope=\"col\">{}</th>", translated(head, language))
                     : std::string("<td></td>");
    out += "</tr></thead>\n<tbody>\n";
    for (std::size_t i = 0; i < listing.runs.size(); ++i)
        out += row_html(listing.runs[i], language, i);
    out += fmt::format("</tbody>\n</table>\n<p><button type=\"submit\">{}</button></p>\n</form>\n",
                       translated("Compare", language));
    if (listing.is_cut)
        out += fmt::format(
            "<p class=\"quiet\">{}</p>\n",
            translated(fmt::format("There are more; {} are listed.", RunShelf::kMostRuns),
                       language));
    return out + page_end(&live);
}

std::string no_run_html(Language language, const std::string& version) {
    LivePage live{.version = version, .events = "events?of=newest", .query = "", .states = {}};
    return page_start(language, translated("saturate live", language), &live) +
           fmt::format("<h1>{}</h1>\n<p>{}</p>\n", translated("Waiting for a run", language),
                       translated("This page shows it as soon as its record exists.", language)) +
           page_end(&live);
}

}  // namespace saturate
