// SPDX-License-Identifier: Apache-2.0
#include "report/timeline_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "report/diagnosis_text.h"
#include "report/page_words.h"
#include "report/timeline_data.h"

namespace saturate {

std::string_view embedded_timeline_script();
std::string_view embedded_timeline_style();

namespace {

struct Piece {
    std::string colour;  // a variable of timeline_style.css
    std::string name;
    double share = 0;
    bool is_striped = false;
};

std::vector<Piece> pieces_of(const Diagnosis& diagnosis) {
    std::vector<Piece> pieces;
    const SplitPercent& split = diagnosis.split;
    if (diagnosis.busy_percent) {
        pieces.push_back({"compute", "compute", split.compute});
        pieces.push_back({"communication", "communication", split.communication});
        pieces.push_back({"copy", "copies", split.memcpy});
        pieces.push_back({"set", "memory sets", split.memset});
    }
    for (const auto& [cause, share] : diagnosis.idle) {
        auto index = static_cast<std::size_t>(cause);
        std::string_view what = diagnosis.part_text(cause);
        bool is_idle_gpu = diagnosis.busy_percent && is_idle(cause);
        pieces.push_back({fmt::format("c{}", index),
                          is_idle_gpu ? fmt::format("idle: {}", what) : std::string(what), share,
                          index % 2 == 1});
    }
    std::erase_if(pieces, [](const Piece& piece) { return piece.share < 0.05; });
    return pieces;
}

std::string bar_html(const std::vector<Piece>& pieces, const PageWords& say) {
    std::string bar, legend, said;
    for (const Piece& piece : pieces) {
        std::string style = fmt::format("--colour: var(--{})", piece.colour);
        std::string_view stripes = piece.is_striped ? " class=\"striped\"" : "";
        std::string text = fmt::format("{} {:.1f} %", say(piece.name), piece.share);
        bar += fmt::format("<span{} style=\"{}; width: {:.2f}%\" title=\"{}\"></span>", stripes,
                           style, piece.share, text);
        legend += fmt::format("<li><i{} style=\"{}\"></i>{}</li>\n", stripes, style, text);
        said += (said.empty() ? "" : ", ") + text;
    }
    return fmt::format(
        "<h2>{}</h2>\n<div class=\"bar\" role=\"img\" aria-label=\"{}\">{}</div>\n"
        "<ul class=\"legend\">\n{}</ul>\n",
        say("Where the time went"), said, bar, legend);
}

std::string gain_html(const Gain& gain, const PageWords& say) {
    if (gain.high <= 1.0) return say("this input does not show it");
    return fmt::format("<strong>{}</strong> {}",
                       say(fmt::format("{:.2f} times as fast", gain.likely)),
                       say(fmt::format("({:.2f} to {:.2f})", gain.low, gain.high)));
}

// `same`: parts of the finding that add nothing, except that they were seen in other sources.
std::string finding_html(const Finding& finding, const std::vector<Finding>& same, bool has_steps,
                         const PageWords& say) {
    std::string out = fmt::format("<section class=\"finding{}\" id=\"{}\">\n<h3>{} {}",
                                  finding.part_of.empty() ? "" : " part", html_text(finding.id),
                                  html_text(finding.id), say(finding.name()));
    double share = finding.share_percent, ms = finding.ms_per_step;
    if (share > 0)
        out += fmt::format(" <span class=\"quiet\">{}</span>",
                           say(has_steps ? fmt::format("{:.1f} %, {:.1f} ms per step", share, ms)
                                         : fmt::format("{:.1f} %, {:.1f} ms", share, ms)));
    out += fmt::format("</h3>\n<dl>\n<dt>{}</dt><dd>{}", say("Evidence"), say(finding.evidence));
    for (const Example& example : finding.examples) {
        double at_ms = static_cast<double>(example.time_ns) / 1e6;
        out += fmt::format("<br><span class=\"quiet\">{}</span> {}",
                           say(fmt::format("at {:.3f} ms", at_ms)), say(example.text));
        if (!example.source.empty())
            out += fmt::format(" <code>{}</code>", html_text(example.source));
    }
    out += fmt::format("</dd>\n<dt>{}</dt><dd>{}", say("Fix"), say(finding.fix_text()));
    for (const SettingChange& setting : finding.settings)
        out += fmt::format("<br><code>{}: {}</code>", html_text(setting.key),
                           html_text(setting.value));
    out += fmt::format("</dd>\n<dt>{}</dt><dd>{}, {}</dd>\n", say("Gain"),
                       gain_html(finding.gain, say),
                       say(fmt::format("confidence {}", confidence_text(finding.confidence))));
    if (!finding.assumes.empty())
        out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", say("Assumes"), say(finding.assumes));
    if (!finding.surer.empty())
        out +=
            fmt::format("<dt>{}</dt><dd>{}</dd>\n", say("To be more certain"), say(finding.surer));
    for (const Finding& part : same)
        out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", say("Also"),
                           say(fmt::format("{} {}: {}", part.id, part.name(), part.evidence)));
    return out + "</dl>\n</section>\n";
}

std::string findings_html(const Diagnosis& diagnosis, const PageView& view, const PageWords& say) {
    std::string out = fmt::format("<h2>{}</h2>\n", say("Findings"));
    std::vector<Finding> shown = diagnosis.shown(view.most, view.everything);
    for (const Finding& finding : shown) {
        if (says_the_same(finding, shown)) continue;
        std::vector<Finding> same;
        for (const Finding& part : shown) {
            if (part.part_of == finding.id && says_the_same(part, shown)) same.push_back(part);
        }
        out += finding_html(finding, same, diagnosis.steps > 0, say);
    }
    if (shown.empty())
        out += fmt::format("<p>{}</p>\n", say("Nothing that would gain 3 % or more."));
    std::string more = more_than_the_product(diagnosis, shown);
    if (diagnosis.total.high > 1.0)
        out += fmt::format("<p>{} {}{}</p>\n", say("All of them together:"),
                           gain_html(diagnosis.total, say), more.empty() ? "" : ", " + say(more));
    if (diagnosis.health.empty() && diagnosis.dropped_events == 0) return out;
    out += fmt::format("<h2>{}</h2>\n<ul>\n", say("How far to trust it"));
    for (const HealthNote& note : diagnosis.health)
        out += fmt::format("<li>{}</li>\n",
                           say(fmt::format("{}: {}{}{}", note.id, note.text,
                                           note.advice.empty() ? "" : "; ", note.advice)));
    if (diagnosis.dropped_events > 0)
        out +=
            fmt::format("<li>{}</li>\n",
                        say(fmt::format("{} events could not be read", diagnosis.dropped_events)));
    return out + "</ul>\n";
}

std::string legend_html(const Timeline& line, const PageWords& say) {
    std::string out = "<ul class=\"legend\">\n";
    auto add = [&](std::string_view colour, std::string_view name, bool is_striped) {
        out += fmt::format("<li><i{} style=\"--colour: var(--{})\"></i>{}</li>\n",
                           is_striped ? " class=\"striped\"" : "", colour, say(name));
    };
    bool has_gpu = line.device >= 0;
    if (has_gpu) {
        add("compute", "kernel", false);
        add("communication", "communication", false);
        add("copy", "memory copy", false);
    }
    add("op", "operator", false);
    add("call", "runtime call", false);
    add("range", "marked range", false);
    for (std::size_t i = 0; has_gpu && i < kCauses; ++i) {
        if (line.causes[i] <= 0) continue;
        add(fmt::format("c{}", i), fmt::format("idle: {}", cause_text(static_cast<Cause>(i))),
            i % 2 == 1);
    }
    return out + "</ul>\n";
}

std::string buttons_html(const PageWords& say) {
    constexpr std::pair<const char*, const char*> kButtons[] = {
        {"+", "Zoom in"},        {"-", "Zoom out"}, {"ArrowLeft", "Left"},
        {"ArrowRight", "Right"}, {"g", "Next gap"}, {"0", "All"}};
    std::string out = "<div class=\"buttons\">\n";
    for (const auto& [key, text] : kButtons)
        out += fmt::format("<button type=\"button\" data-key=\"{}\">{}</button>\n", key, say(text));
    return out + "</div>\n";
}

std::string timeline_section(const Trace& trace, Language language) {
    PageWords say(language);
    Timeline line = make_timeline(trace);
    StepData step = typical_step(line, language);
    if (step.events == 0) return fmt::format("<p>{}</p>\n", say("The trace has nothing to draw."));
    std::string head =
        fmt::format("{}: {}", line.has_steps ? "One typical step" : "Timeline", step.name);
    std::string events = fmt::format("{} events", step.events);
    if (step.left_out > 0)
        events += fmt::format(" ({} more nested deeper, on minor threads or beyond the limit)",
                              step.left_out);
    std::string out =
        fmt::format("<h2>{}</h2>\n<p class=\"quiet\">{}: {} {}</p>\n", say(head),
                    html_text(trace.file), say(events + "."),
                    say("Drag to move, wheel or + and - to zoom, 0 for all, g for the next gap, "
                        "double click to "
                        "fill the view."));
    out += legend_html(line, say) + buttons_html(say);
    out += fmt::format(
        "<div id=\"timeline\">\n<canvas id=\"canvas\" tabindex=\"0\" role=\"application\" "
        "aria-label=\"{}\" aria-describedby=\"tip\"></canvas>\n"
        "<div id=\"tip\" role=\"status\" aria-live=\"polite\" hidden></div>\n</div>\n",
        say("Timeline of one step; arrow keys move, plus and minus zoom, g goes to the next gap"));
    out += fmt::format("<script type=\"application/json\" id=\"data\">{}</script>\n", step.json);
    out += fmt::format("<script>\n{}</script>\n", embedded_timeline_script());
    return out;
}

}  // namespace

std::string html_text(std::string_view raw) {
    std::string out;
    out.reserve(raw.size());
    for (char c : raw) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\'':
                out += "&#39;";
                break;
            case '\n':
            case '\t':
                out += c;
                break;
            default:
                if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
                    out += "\xef\xbf\xbd";
                else
                    out += c;
        }
    }
    return out;
}

const Trace* trace_to_draw(const Diagnosis& diagnosis, const std::vector<Trace>& traces) {
    return diagnosis.rank_shown < traces.size() ? &traces[diagnosis.rank_shown] : nullptr;
}

std::string diagnosis_page(const Diagnosis& diagnosis, const Trace* trace, const PageView& view) {
    PageWords say(view.language);
    std::string inputs = html_text(join(diagnosis.inputs, ", "));
    std::string out = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
        "'unsafe-inline'; style-src 'unsafe-inline'\">\n"
        "<title>{} - saturate diagnose</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n",
        say.code(), inputs, embedded_timeline_style());
    std::vector<std::string> about;
    if (!diagnosis.device.empty()) about.push_back(diagnosis.device);
    if (diagnosis.window_ms > 0)
        about.push_back(fmt::format("{:.1f} ms recorded", diagnosis.window_ms));
    if (diagnosis.steps > 0) about.push_back(fmt::format("{} steps", diagnosis.steps));
    out += fmt::format("<h1>{}</h1>\n<p class=\"quiet\">{}{}{}</p>\n", say(diagnosis.verdict),
                       inputs, about.empty() ? "" : ": ", say(join(about, ", ")));
    std::vector<Piece> pieces = pieces_of(diagnosis);
    if (!pieces.empty()) out += bar_html(pieces, say);
    if (std::string left_out = left_out_text(diagnosis); !left_out.empty())
        out += fmt::format("<p class=\"quiet\">{}</p>\n", say(left_out));
    out += findings_html(diagnosis, view, say);
    if (trace) out += timeline_section(*trace, view.language);
    return out + "</main>\n</body>\n</html>\n";
}

}  // namespace saturate
