// SPDX-License-Identifier: Apache-2.0
#include "report/fix_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/figures.h"
#include "base/text.h"
#include "report/page_words.h"
#include "report/run_report.h"
#include "report/search_page.h"
#include "report/timeline_html.h"
#include "report/tuning_text.h"

namespace saturate {

namespace {

std::string path_of(const LossCurve& curve, const SvgScale& x, const SvgScale& y,
                    const char* style) {
    std::string points;
    for (const LossPoint& point : curve) {
        if (std::isfinite(point.loss))
            points += fmt::format("{:.1f},{:.1f} ", x(point.samples), y(point.loss));
    }
    return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke-width=\"1.5\" {}/>", points,
                       style);
}

std::string losses_svg(const LossCurve& before, const LossCurve& after, const PageWords& say) {
    double least = INFINITY, most = -INFINITY, samples = 0;
    for (const LossCurve* curve : {&before, &after}) {
        for (const LossPoint& point : *curve) {
            if (!std::isfinite(point.loss)) continue;
            least = std::min(least, point.loss);
            most = std::max(most, point.loss);
            samples = std::max(samples, point.samples);
        }
    }
    if (!(most >= least)) return "";
    double height = 240;
    SvgScale x{0, samples, kSvgLeft, kSvgWidth - kSvgLeft - kSvgRight};
    SvgScale y = svg_scale(least, most, height - 30, -(height - 44));
    // The dashed line is on top, so that both are visible where they coincide.
    std::string out = path_of(after, x, y, "stroke=\"var(--r1)\"") +
                      path_of(before, x, y, "stroke=\"var(--r0)\" stroke-dasharray=\"5 5\"");
    out += svg_words(kSvgLeft - 8, y(most) + 4, "end", fmt::format("{:.2g}", most));
    out += svg_words(kSvgLeft - 8, y(least) + 4, "end", fmt::format("{:.2g}", least));
    out += svg_words(kSvgWidth - kSvgRight, height - 8, "end",
                     say(fmt::format("{:.0f} samples", samples)));
    std::string legend = fmt::format(
        "<li><i class=\"line d1\" style=\"border-color:var(--r0)\"></i>{}</li>", say("before"));
    if (!after.empty())
        legend += fmt::format("<li><i class=\"line\" style=\"border-color:var(--r1)\"></i>{}</li>",
                              say("after"));
    return svg_picture(height, say("loss by samples seen, before and after"), out) +
           fmt::format("<ul class=\"legend\">{}</ul>\n", legend);
}

std::string why_html(const FixPage& page, const PageWords& say) {
    std::string out = fmt::format("<h2>{}</h2>\n", say("Why it is slow"));
    if (page.baseline)
        out += fmt::format(
            "<p>{}</p>\n",
            say(fmt::format("{} samples/s, {:.1f} ms per step; {:.0f} % of it waiting for data.",
                            rate_text(page.baseline->per_second), 1e3 * page.baseline->step_seconds,
                            100 * page.baseline->input_wait_share)));
    std::size_t shown = 0;
    for (const Finding& finding : page.findings) {
        if (finding.optional || !finding.part_of.empty() || shown++ >= 4) continue;
        out += fmt::format("<div class=\"finding\"><h4>{}</h4><p>{}</p>{}</div>\n",
                           say(fmt::format("{}, {:.0f} %", finding.name(), finding.share_percent)),
                           say(finding.evidence),
                           finding.where.empty() ? ""
                                                 : fmt::format("<p class=\"quiet\">{}</p>",
                                                               html_text(finding.where)));
    }
    if (shown == 0) out += fmt::format("<p>{}</p>\n", say("No cause above 3 % was seen."));
    std::vector<const FactWithoutEffect*> dead = said_without_effect(page.answer.facts);
    if (dead.empty()) return out;
    out += fmt::format("<h3>{}</h3>\n<ul>\n", say("Settings that have no effect"));
    for (const FactWithoutEffect* one : dead)
        out += fmt::format("<li><code>{}</code> {}: {}</li>\n", html_text(one->place().text()),
                           html_text(one->setting), say(one->why));
    return out + "</ul>\n";
}

std::string tried_html(const FixAnswer& answer, const PageWords& say) {
    if (answer.plan.proposals.empty()) return "";
    std::string out = fmt::format(
        "<h2>{}</h2>\n<table>\n<thead><tr><th>{}</th><th>{}</th><th "
        "style=\"min-width:5em\">{}</th><th>{}</th><th>{}</th></tr></thead>\n<tbody>\n",
        say("What was tried"), say("change"), say("where"), say("level"), say("outcome"),
        say("gain"));
    std::vector<const FixProposal*> proposals;
    for (const FixProposal& proposal : answer.plan.proposals) proposals.push_back(&proposal);
    // What is kept comes first, what was not tried last.
    std::ranges::stable_sort(proposals, {}, [&](const FixProposal* proposal) {
        FixResult result = answer.outcome(*proposal).result;
        return result == FixResult::kept ? 0 : result == FixResult::not_tried ? 2 : 1;
    });
    for (const FixProposal* one : proposals) {
        const FixProposal& proposal = *one;
        FixOutcome outcome = answer.outcome(proposal);
        if (outcome.note.empty() && outcome.result != FixResult::not_tried)
            outcome.note = proposal.reason;
        std::string change =
            proposal.before.empty()
                ? fmt::format("{}: {}", proposal.setting, proposal.after)
                : fmt::format("{}: {} -> {}", proposal.setting, proposal.before, proposal.after);
        out += fmt::format(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td style=\"white-space:normal\">{}{}</td>"
            "<td>{}</td></tr>\n",
            html_text(change), html_text(proposal.at.place().text()), level_name(proposal.level),
            outcome.result == FixResult::kept ? fmt::format("<b>{}</b>", say("kept"))
                                              : say(result_name(outcome.result)),
            outcome.note.empty()
                ? ""
                : fmt::format(" <span class=\"quiet\">{}</span>", say(outcome.note)),
            outcome.ratio ? fmt::format("{:+.0f} %", 100 * (*outcome.ratio - 1)) : "-");
    }
    return out + "</tbody>\n</table>\n";
}

std::string patch_html(const FixAnswer& answer, const PageWords& say) {
    std::string patch = answer.patch.text(), out;
    if (patch.empty()) return "";
    for (std::string_view line : split(trim(patch), '\n')) {
        const char* colour = line.starts_with("+++") || line.starts_with("---") ? "var(--quiet)"
                             : line.starts_with('+')                            ? "var(--r2)"
                             : line.starts_with('-')                            ? "var(--r0)"
                                                                                : "inherit";
        out += fmt::format("<span style=\"color:{}\">{}</span>\n", colour,
                           html_text(std::string(line)));
    }
    return fmt::format(
        "<h2>{2}</h2>\n<p>{3} <code>git apply {0}</code> {4} <code>patch -p1 &lt; {0}</code></p>\n"
        "<pre style=\"overflow-x:auto\">{1}</pre>\n",
        html_text(answer.patch_file), out, say("The patch"), say("In the folder of the job:"),
        say("or"));
}

}  // namespace

std::string fix_verdict(const FixAnswer& answer, const Proof* proof) {
    // A change that is faster but in no patch was not worth keeping.
    if (proof && (proof->verdict != Verdict::faster || !answer.patch.files.empty()))
        return proof_headline(*proof);
    if (proof) return std::string(verdict_name(proof->verdict));
    if (answer.is_interrupted) return "interrupted; not everything was tried";
    if (!answer.untried().empty()) return "not everything was tried";
    bool was_tried = false, was_refused = false;
    for (const auto& [id, outcome] : answer.outcomes) {
        if (outcome.result == FixResult::not_tried) continue;
        was_tried = true;
        was_refused |= !outcome.ratio;  // it failed, or training changed
    }
    return was_refused ? "nothing that was tried could be kept"
           : was_tried ? "nothing that was tried is faster"
                       : "nothing to gain was found";
}

std::string fix_html(const FixPage& page) {
    PageWords say(page.language);
    std::string verdict = fix_verdict(page.answer, page.proof);
    std::string out = page_start(page.language, "saturate fix", nullptr);
    out +=
        fmt::format("<h1>{}</h1>\n<p><code>{}</code></p>\n", say(verdict), html_text(page.command));
    for (std::string_view line : split(trim(page.with_more_time), '\n'))
        if (!line.empty()) out += fmt::format("<p>{}</p>\n", say(std::string(line)));
    if (!page.busy.empty()) out += fmt::format("<p class=\"quiet\">{}</p>\n", say(page.busy));
    out += why_html(page, say);
    out += tried_html(page.answer, say);
    if (page.proof) out += proof_html(*page.proof, say);
    std::string losses = losses_svg(page.losses_before, page.losses_after, say);
    if (!losses.empty()) out += fmt::format("<h2>{}</h2>\n{}", say("Losses"), losses);
    out += patch_html(page.answer, say);
    out += fmt::format("<p class=\"quiet\">{}</p>\n",
                       say(fmt::format("{} run{} in {:.0f} s.", page.trials,
                                       page.trials == 1 ? "" : "s", page.seconds)));
    return out + "</main>\n</body>\n</html>\n";
}

}  // namespace saturate
