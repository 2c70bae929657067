// SPDX-License-Identifier: Apache-2.0
#include "report/run_list_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"
#include "report/http_guard.h"
#include "report/page_words.h"
#include "report/run_about.h"
#include "report/run_report.h"
#include "report/timeline_html.h"
#include "report/tuning_text.h"

namespace saturate {

namespace {

std::string length_text(const std::optional<double>& seconds) {
    if (!seconds) return "-";
    if (*seconds >= 7200) return fmt::format("{:.1f} h", *seconds / 3600);
    return *seconds >= 120 ? fmt::format("{:.1f} min", *seconds / 60)
                           : fmt::format("{:.1f} s", *seconds);
}

// A line of the list: a run, or the runs that share a folder.
struct ListLine {
    std::vector<const ShelfRun*> runs;
    std::string group;  // empty: a single run

    [[nodiscard]] const ShelfRun& first() const { return *runs.front(); }
    [[nodiscard]] bool is_group() const { return !group.empty(); }
    [[nodiscard]] std::string name() const { return is_group() ? group : first().name(); }
    [[nodiscard]] std::string kind() const {
        bool is_search = is_group() && !first().title.empty();
        return is_search ? "search" : first().kind;
    }
    [[nodiscard]] std::string state() const {
        if (!is_group()) return first().state;
        return std::ranges::any_of(runs, &ShelfRun::is_running) ? "running" : "done";
    }
    [[nodiscard]] std::int64_t began() const {
        return std::ranges::min(runs, {}, &ShelfRun::started_wall_ns)->started_wall_ns;
    }
    [[nodiscard]] std::optional<double> seconds() const {
        std::optional<double> out;
        for (const ShelfRun* run : runs)
            if (run->seconds) out = out.value_or(0) + *run->seconds;
        return out;
    }
    [[nodiscard]] std::optional<double> best(std::optional<double> ShelfRun::*value) const {
        std::optional<double> out;
        for (const ShelfRun* run : runs) out = std::max(out, run->*value);
        return out;
    }
};

struct ListColumn {
    const char* by;
    const char* head;
    bool (*is_before)(const ListLine&, const ListLine&);  // in the order after a first click
};

constexpr ListColumn kListColumns[] = {
    {"name", "run", [](const ListLine& a, const ListLine& b) { return a.name() < b.name(); }},
    {"kind", "kind", [](const ListLine& a, const ListLine& b) { return a.kind() < b.kind(); }},
    {"state", "state", [](const ListLine& a, const ListLine& b) { return a.state() < b.state(); }},
    {"began", "began", [](const ListLine& a, const ListLine& b) { return a.began() > b.began(); }},
    {"length", "length",
     [](const ListLine& a, const ListLine& b) { return a.seconds() > b.seconds(); }},
    {"rate", "samples/s",
     [](const ListLine& a, const ListLine& b) {
         return a.best(&ShelfRun::samples_per_second) > b.best(&ShelfRun::samples_per_second);
     }},
    {"busy", "busy",
     [](const ListLine& a, const ListLine& b) {
         return a.best(&ShelfRun::busy_percent) > b.best(&ShelfRun::busy_percent);
     }},
};

bool is_found(const ShelfRun& run, const std::string& words) {
    std::string text =
        lower(fmt::format("{} {} {} {}", run.name(), run.kind, run.state, run.device));
    for (std::string_view word : split(words, ' '))
        if (text.find(lower(word)) == std::string::npos) return false;
    return true;
}

// Returns the lines of the list. A search and an opened group show single runs instead of groups.
std::vector<ListLine> lines_of(const Listing& listing, const ListView& view) {
    bool is_grouped = view.find.empty() && view.group.empty();
    std::map<std::string, std::size_t> sizes, places;
    for (const ShelfRun& run : listing.runs) ++sizes[run.group()];
    std::vector<ListLine> out;
    for (const ShelfRun& run : listing.runs) {
        std::string group = run.group();
        if (!view.group.empty() && group != view.group) continue;
        if (!is_found(run, view.find)) continue;
        if (!is_grouped || group.empty() || sizes[group] < 2) {
            out.push_back({{&run}, ""});
            continue;
        }
        auto [place, is_new] = places.try_emplace(group, out.size());
        if (is_new) out.push_back({{}, group});
        out[place->second].runs.push_back(&run);
    }
    bool is_reversed = view.by.starts_with('-');
    for (const ListColumn& column : kListColumns) {
        if (view.by.substr(is_reversed ? 1 : 0) != column.by) continue;
        std::ranges::stable_sort(out, [&](const ListLine& a, const ListLine& b) {
            return is_reversed ? column.is_before(b, a) : column.is_before(a, b);
        });
    }
    return out;
}

std::string name_html(const ListLine& line, const PageWords& say, std::size_t number) {
    if (line.is_group())
        return fmt::format(
            "<td></td><th scope=\"row\"><a href=\"runs{}\">{}</a> <span class=\"quiet\">{}</span>"
            "</th>",
            html_text(ListView{.find = {}, .by = {}, .group = line.group}.query()),
            html_text(line.group), say(fmt::format("{} runs", line.runs.size())));
    const ShelfRun& run = line.first();
    std::string place = run.id == "." ? run_folder_name(run.folder) : run.id;
    return fmt::format(
        "<td><input type=\"checkbox\" name=\"id\" value=\"{0}\" id=\"run{1}\"></td>"
        "<th scope=\"row\"><label for=\"run{1}\" class=\"hidden\">{2}</label>"
        "<a href=\"run?id={3}\">{4}</a>{5}</th>",
        html_text(run.id), number, say(fmt::format("choose {}", line.name())), url_encoded(run.id),
        run.title.empty() ? html_text(place) : say(run.title),
        run.title.empty() ? "" : fmt::format(" <span class=\"quiet\">{}</span>", html_text(place)));
}

std::string line_html(const ListLine& line, Language language, std::size_t number) {
    PageWords say(language);
    auto rate = line.best(&ShelfRun::samples_per_second);
    auto busy = line.best(&ShelfRun::busy_percent);
    std::string best = line.is_group() ? say("at most") + " " : "";
    return fmt::format(
        "<tr>{}<td>{}{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{}</td></tr>\n",
        name_html(line, say, number), line.kind().empty() ? "-" : say(line.kind()),
        line.first().simulated ? say(" (simulated)") : "",
        html_text(state_text(line.state(), language)), local_time_text(line.began()),
        length_text(line.seconds()), rate ? best + rate_text(*rate) : "-",
        busy ? best + fmt::format("{:.0f} %", *busy) : "-");
}

// Returns the column heads. A click on the column that the list is sorted by reverses the order.
std::string heads_html(const ListView& view, const PageWords& say) {
    std::string out = "<table class=\"list\">\n<thead><tr><td></td>";
    for (const ListColumn& column : kListColumns) {
        std::string now = view.by.empty() ? "began" : view.by;
        bool is_in_order = now == column.by, is_reversed = now == std::string("-") + column.by;
        ListView next = view;
        next.by = is_in_order ? std::string("-") + column.by : column.by;
        out += fmt::format("<th scope=\"col\"{}><a href=\"runs{}\">{}</a>{}</th>",
                           is_in_order   ? " aria-sort=\"descending\""
                           : is_reversed ? " aria-sort=\"ascending\""
                                         : "",
                           html_text(next.query()), say(column.head),
                           is_in_order   ? " ↓"
                           : is_reversed ? " ↑"
                                         : "");
    }
    return out + "</tr></thead>\n<tbody>\n";
}

std::string search_html(const ListView& view, const PageWords& say) {
    auto kept = [](const char* name, const std::string& value) {
        return value.empty() ? std::string()
                             : fmt::format("<input type=\"hidden\" name=\"{}\" value=\"{}\">", name,
                                           html_text(value));
    };
    return fmt::format(
        "<form class=\"find\" action=\"runs\" method=\"get\" role=\"search\">"
        "<label>{} <input type=\"search\" name=\"find\" value=\"{}\" placeholder=\"{}\"></label> "
        "{}{}<button type=\"submit\">{}</button></form>\n",
        say("Find runs"), html_text(view.find), say("name, kind, state or device"),
        kept("by", view.by), kept("in", view.group), say("Find"));
}

}  // namespace

std::string ListView::query() const {
    const std::pair<const char*, const std::string&> parts[] = {
        {"find", find}, {"by", by}, {"in", group}};
    std::string out;
    for (const auto& [name, value] : parts)
        if (!value.empty())
            out += fmt::format("{}{}={}", out.empty() ? "?" : "&", name, url_encoded(value));
    return out;
}

std::string state_text(const std::string& state, Language language) {
    return translated(state == "stopped" ? "stopped without a summary" : state, language);
}

std::string run_list_html(const Listing& listing, const ListView& view, Language language,
                          const std::string& version) {
    PageWords say(language);
    LivePage live{.version = version, .events = "events?of=list", .query = "", .states = {}};
    std::string out = page_start(language, translated("saturate runs", language), &live);
    out += fmt::format("<h1>{}</h1>\n", view.group.empty() ? say("Runs") : html_text(view.group));
    if (listing.runs.empty()) {
        out += fmt::format("<p>{}</p>\n", say("No run here yet."));
        return out + page_end(&live);
    }
    out += search_html(view, say);
    std::vector<ListLine> lines = lines_of(listing, view);
    if (lines.empty())
        return out + fmt::format("<p>{}</p>\n", say("No run fits.")) + page_end(&live);
    bool can_compare = std::ranges::count(lines, false, &ListLine::is_group) > 1;
    if (can_compare)
        out += fmt::format(
            "<p class=\"quiet\">{}</p>\n<form action=\"run\" method=\"get\">\n"
            "<input type=\"hidden\" name=\"order\" value=\"time\">\n",
            say("A name opens one run; choose two or more and compare them. The one "
                "that began first is \"before\"."));
    out += heads_html(view, say);
    for (std::size_t i = 0; i < lines.size(); ++i) out += line_html(lines[i], language, i);
    out += "</tbody>\n</table>\n";
    if (can_compare)
        out += fmt::format("<p><button type=\"submit\">{}</button></p>\n</form>\n", say("Compare"));
    if (listing.is_cut)
        out += fmt::format(
            "<p class=\"quiet\">{}</p>\n",
            say(fmt::format("There are more runs; only {} are listed.", RunShelf::kMostRuns)));
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
