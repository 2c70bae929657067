// SPDX-License-Identifier: Apache-2.0
#include "report/tune_html.h"

#include <fmt/format.h>

#include "base/figures.h"
#include "base/text.h"
#include "report/page_words.h"
#include "report/run_about.h"
#include "report/run_report.h"
#include "report/search_page.h"
#include "report/timeline_html.h"
#include "report/tuning_text.h"

namespace saturate {

namespace {

std::string tune_headline(const TuneAnswer& answer) {
    if (answer.proof) return proof_headline(*answer.proof);
    if (answer.interrupted) return "interrupted before the proof";
    return answer.search.best.empty() ? "nothing that was tried is faster" : "not proven";
}

std::string outcome_of_trial(const Tried& tried) {
    if (tried.outcome != TrialOutcome::ok) return std::string(outcome_name(tried.outcome));
    if (tried.change.empty()) return "";
    return tried.kept ? "kept" : tried.open ? "too close to call" : "not kept";
}

std::string row_of_trial(const Tried& tried, const PageWords& say) {
    std::string change;
    for (const auto& [key, value] : tried.change)
        change += fmt::format("{}{}={}", change.empty() ? "" : " ", key, value);
    bool is_measured = tried.rate && tried.outcome == TrialOutcome::ok;
    std::string outcome = say(outcome_of_trial(tried));
    if (tried.kept) outcome = "<b>" + outcome + "</b>";
    std::string why = tried.message.empty() ? tried.reason : tried.message;
    return fmt::format(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td>"
        "<td style=\"white-space:normal\" class=\"quiet\">{}</td></tr>\n",
        change.empty() ? say(tried.cause) : html_text(change),
        is_measured ? fmt::format("{} ({}..{})", rate_text(tried.rate->per_second),
                                  rate_text(tried.rate->low), rate_text(tried.rate->high))
                    : "-",
        is_measured && !tried.change.empty() ? fmt::format("{:+.0f} %", 100 * (tried.ratio - 1))
                                             : "-",
        outcome, say(why));
}

std::string trials_html(const SearchAnswer& search, const PageWords& say) {
    std::string out = fmt::format(
        "<h2>{}</h2>\n<table>\n<thead><tr><th>{}</th><th>{}</th><th>{}</th><th>{}</th><th>{}</th>"
        "</tr></thead>\n<tbody>\n",
        say("What was tried"), say("change"), say("samples/s"), say("gain"), say("outcome"),
        say("why"));
    for (const Tried& tried : search.trials) out += row_of_trial(tried, say);
    return out + "</tbody>\n</table>\n";
}

std::string settings_html(const TunePage& page, const PageWords& say) {
    const SearchAnswer& search = page.answer.search;
    if (search.best.empty()) return "";
    std::string words;
    for (const auto& [key, value] : search.best) words += fmt::format(" --set {}={}", key, value);
    std::string head = page.is_proven ? std::string("What helped") : "Found, but not proven";
    std::string out = fmt::format("<h2>{}</h2>\n", say(head));
    if (!page.why.empty()) out += fmt::format("<p>{}</p>\n", say(page.why));
    auto rows = kept_rows(search, page.request.start, page.is_proven);
    out += "<table>\n<thead><tr>";
    for (const std::string& head : rows[0]) out += fmt::format("<th>{}</th>", say(head));
    out += "</tr></thead>\n<tbody>\n";
    for (std::size_t i = 1; i < rows.size(); ++i) {
        const std::vector<std::string>& row = rows[i];
        // The name and the values are as the user writes them.
        out += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td>", html_text(row[0]),
                           html_text(row[1]), html_text(row[2]));
        if (page.is_proven) out += fmt::format("<td>{}</td>", say(row[3]));
        out += fmt::format("<td style=\"white-space:normal\" class=\"quiet\">{}</td></tr>\n",
                           say(row.back()));
    }
    return out + fmt::format("</tbody>\n</table>\n<p><code>{}</code></p>\n",
                             html_text(std::string(trim(words))));
}

}  // namespace

std::string tune_html(const TunePage& page) {
    PageWords say(page.language);
    const TuneAnswer& answer = page.answer;
    const MeasuredJob& job = page.request.job;
    std::string out = page_start(page.language, "saturate tune", nullptr);
    out += fmt::format("<h1>{}</h1>\n<p><code>{}</code></p>\n", say(tune_headline(answer)),
                       html_text(job.command.empty() ? job.config : join(job.command, " ")));
    out +=
        fmt::format("<p class=\"quiet\">{}</p>\n",
                    fmt::format("{}{} | {} | {}", html_text(page.request.device),
                                page.request.is_simulated() ? say(" (simulated)") : "",
                                say(or_dash(page.machine)), local_time_text(page.began_wall_ns)));
    if (answer.proof) out += proof_html(*answer.proof, say);
    out += settings_html(page, say);
    out += trials_html(answer.search, say);
    out += fmt::format("<pre style=\"white-space:pre-wrap\">{}</pre>\n",
                       say(search_text(answer.search)));
    return out + fmt::format("<p class=\"quiet\">{}</p>\n</main>\n</body>\n</html>\n",
                             say(fmt::format("{} trials in {:.0f} s.", answer.search.trials.size(),
                                             answer.seconds)));
}

}  // namespace saturate
