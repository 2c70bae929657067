// SPDX-License-Identifier: Apache-2.0
#include "report/run_site.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/http_guard.h"
#include "report/run_list_html.h"
#include "report/run_report.h"

namespace saturate {

namespace {

constexpr std::size_t kMostCompared = 8;
constexpr std::size_t kPagesKept = 32;
constexpr const char* kHtml = "text/html; charset=utf-8";

// Allows a page only its inline scripts and styles, and requests to this server.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

HttpReply secured(HttpReply reply) {
    reply.headers.insert(reply.headers.end(), {{"Content-Security-Policy", kPolicy},
                                               {"Cross-Origin-Resource-Policy", "same-origin"},
                                               {"Referrer-Policy", "no-referrer"},
                                               {"Cache-Control", "no-store"}});
    return reply;
}

// Limits the length of the values, because a page is cached for each combination of them.
ListView list_view(const HttpRequest& request) {
    constexpr std::size_t kMost = 200;
    return {.find = std::string(trim(request.value("find").substr(0, kMost))),
            .by = request.value("by").substr(0, kMost),
            .group = request.value("in").substr(0, kMost)};
}

}  // namespace

// The requested content: the list, the newest run or given runs, as a live page or as a file.
struct RunSite::Place {
    enum class Form { page, html_file, json_file };
    bool is_list = false;
    bool is_newest = false;
    std::vector<std::string> ids;
    ListView view = {};
    Form form = Form::page;

    [[nodiscard]] std::string channel() const {
        if (is_list) return "list";
        if (is_newest) return "newest";
        std::string out = "runs";
        for (const std::string& id : ids) out += "\n" + id;
        return out;
    }
    [[nodiscard]] std::string query() const {
        std::string out;
        for (const std::string& id : ids)
            out += fmt::format("{}id={}", out.empty() ? "?" : "&", url_encoded(id));
        return out;
    }
};

RunSite::RunSite(RunShelf shelf, SiteSettings settings)
    : settings_(std::move(settings)), shelf_(std::move(shelf)) {
    tick();
}

void RunSite::tick() {
    std::shared_ptr<const Listing> fresh = shelf_.scan();
    std::lock_guard lock(listing_mutex_);
    listing_ = std::move(fresh);
}

std::shared_ptr<const Listing> RunSite::listing() const {
    std::lock_guard lock(listing_mutex_);
    return listing_;
}

std::string RunSite::version(const std::string& channel) const {
    std::shared_ptr<const Listing> now = listing();
    if (channel == "list") return now->version;
    if (channel == "newest") {
        const ShelfRun* run = now->newest();
        return run ? fmt::format("{} {}", run->version, run->id) : "none";
    }
    std::string out;
    std::vector<std::string_view> parts = split(channel, '\n');
    for (std::size_t i = 1; i < parts.size(); ++i) {
        const ShelfRun* run = now->find(parts[i]);
        out += fmt::format("{} ", run ? run->version : "gone");
    }
    return std::string(trim(out));
}

HttpReply RunSite::answer(const HttpRequest& request) {
    std::shared_ptr<const Listing> now = listing();
    Place place{.ids = request.values("id")};
    const std::string& path = request.path;
    bool is_file = path == "/report.html" || path == "/report.json";
    bool is_stream = path == "/events";
    if (path == "/report.html") place.form = Place::Form::html_file;
    if (path == "/report.json") place.form = Place::Form::json_file;
    if (path == "/") {
        bool is_one = now->runs.size() == 1 && now->runs[0].id == ".";
        place = {.is_list = !settings_.follows_newest && !is_one,
                 .is_newest = settings_.follows_newest,
                 .ids = {}};
        if (is_one && !settings_.follows_newest) place.ids = {"."};
    } else if (path == "/runs") {
        place = {.is_list = true, .ids = {}, .view = list_view(request)};
    } else if (is_stream && place.ids.empty()) {
        place.is_newest = request.value("of") == "newest";
        place.is_list = !place.is_newest;
    } else if (path != "/run" && !is_file && !is_stream) {
        return secured(HttpReply::text(404, "not found here; try / or /runs\n"));
    }
    bool names_runs = !place.is_list && !place.is_newest;
    if (names_runs && (place.ids.empty() || place.ids.size() > kMostCompared))
        return secured(
            HttpReply::text(400, fmt::format("1 to {} runs, written as id=NAME\n", kMostCompared)));
    for (const std::string& id : place.ids) {
        if (!now->find(id))
            return secured(HttpReply::text(404, "there is no such run; see /runs\n"));
    }
    if (request.value("order") == "time") {
        std::ranges::stable_sort(
            place.ids, {}, [&](const std::string& id) { return now->find(id)->started_wall_ns; });
    }
    if (is_stream) {
        HttpReply reply = HttpReply::text(200, version(place.channel()));
        reply.channel = place.channel();
        return secured(std::move(reply));
    }
    return secured(page(place, *now));
}

HttpReply RunSite::page(const Place& place, const Listing& now) {
    HttpReply reply{.content_type = kHtml};
    if (place.form != Place::Form::page)
        reply.headers.emplace_back(
            "Content-Disposition",
            fmt::format("attachment; filename=\"{}\"",
                        place.form == Place::Form::json_file ? "report.json" : "report.html"));
    if (place.form == Place::Form::json_file) reply.content_type = "application/json";
    std::string version = this->version(place.channel());
    std::lock_guard lock(render_mutex_);
    Made& made = made_[fmt::format("{}\n{}\n{}", static_cast<int>(place.form), place.channel(),
                                   place.view.query())];
    if (!made.content || made.version != version) {
        made.content = std::make_shared<std::string>(render(place, now, version));
        made.version = version;
    }
    reply.content = made.content;
    if (made_.size() > kPagesKept) made_.clear();  // made again when needed
    return reply;
}

std::string RunSite::render(const Place& place, const Listing& now, const std::string& version) {
    if (place.is_list) return run_list_html(now, place.view, settings_.language, version);
    std::vector<const ShelfRun*> runs;
    for (const std::string& id : place.ids) runs.push_back(now.find(id));
    if (place.is_newest) runs = {now.newest()};
    if (!runs[0]) return no_run_html(settings_.language, version);
    ReportInput input{.language = settings_.language};
    Place named;
    for (const ShelfRun* run : runs) {
        input.runs.push_back(*shelf_.view(*run));
        // The path below the folder distinguishes the trials of two searches.
        if (run->id != ".") input.runs.back().name = run->name();
        named.ids.push_back(run->id);
    }
    if (place.form == Place::Form::json_file) return report_json(input).line() + "\n";
    if (place.form == Place::Form::html_file) return report_html(input);
    LivePage live{.version = version,
                  .events = place.is_newest ? "events?of=newest" : "events" + place.query(),
                  .query = named.query()};
    for (const ShelfRun* run : runs) live.states.push_back(run->state);
    return report_html(input, &live);
}

}  // namespace saturate
