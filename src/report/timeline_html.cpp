// SPDX-License-Identifier: Apache-2.0
#include "report/timeline_html.h"

#include <fmt/format.h>

#include <algorithm>

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
        pieces.push_back(
            {fmt::format("c{}", index),
             fmt::format("{}: {}", is_idle(cause) ? "idle" : "not known", cause_text(cause)), share,
             index % 2 == 1});
    }
    std::erase_if(pieces, [](const Piece& piece) { return piece.share < 0.05; });
    return pieces;
}

std::string bar_html(const std::vector<Piece>& pieces) {
    std::string bar, legend, said;
    for (const Piece& piece : pieces) {
        std::string style = fmt::format("--colour: var(--{})", piece.colour);
        std::string_view stripes = piece.is_striped ? " class=\"striped\"" : "";
        bar += fmt::format("<span{} style=\"{}; width: {:.2f}%\" title=\"{} {:.1f} %\"></span>",
                           stripes, style, piece.share, html_text(piece.name), piece.share);
        legend += fmt::format("<li><i{} style=\"{}\"></i>{} {:.1f} %</li>\n", stripes, style,
                              html_text(piece.name), piece.share);
        said += fmt::format("{}{} {:.1f} %", said.empty() ? "" : ", ", html_text(piece.name),
                            piece.share);
    }
    return fmt::format(
        "<h2>Where the time went</h2>\n<div class=\"bar\" role=\"img\" aria-label=\"{}\">{}</div>\n"
        "<ul class=\"legend\">\n{}</ul>\n",
        said, bar, legend);
}

std::string gain_html(const Gain& gain) {
    if (gain.high <= 1.0) return "not known from this input";
    return fmt::format("<strong>{:.2f} times as fast</strong> ({:.2f} to {:.2f})", gain.likely,
                       gain.low, gain.high);
}

std::string finding_html(const Finding& finding) {
    std::string out = fmt::format("<section class=\"finding{}\" id=\"{}\">\n<h3>{} {}",
                                  finding.part_of.empty() ? "" : " part", html_text(finding.id),
                                  html_text(finding.id), html_text(finding.name()));
    if (finding.share_percent > 0)
        out += fmt::format(" <span class=\"quiet\">{:.1f} %, {:.1f} ms per step</span>",
                           finding.share_percent, finding.ms_per_step);
    out += fmt::format("</h3>\n<dl>\n<dt>Evidence</dt><dd>{}", html_text(finding.evidence));
    for (const Example& example : finding.examples) {
        out += fmt::format("<br><span class=\"quiet\">at {:.3f} ms</span> {}",
                           static_cast<double>(example.time_ns) / 1e6, html_text(example.text));
        if (!example.source.empty())
            out += fmt::format(" <code>{}</code>", html_text(example.source));
    }
    out += fmt::format("</dd>\n<dt>Fix</dt><dd>{}", html_text(finding.fix_text()));
    for (const SettingChange& setting : finding.settings)
        out += fmt::format("<br><code>{}: {}</code>", html_text(setting.key),
                           html_text(setting.value));
    out += fmt::format("</dd>\n<dt>Gain</dt><dd>{}, confidence {}</dd>\n", gain_html(finding.gain),
                       confidence_text(finding.confidence));
    if (!finding.surer.empty())
        out += fmt::format("<dt>To be more certain</dt><dd>{}</dd>\n", html_text(finding.surer));
    return out + "</dl>\n</section>\n";
}

std::string findings_html(const Diagnosis& diagnosis, const PageView& view) {
    std::string out = "<h2>Findings</h2>\n";
    std::vector<Finding> shown = diagnosis.shown(view.most, view.everything);
    for (const Finding& finding : shown) out += finding_html(finding);
    if (shown.empty()) out += "<p>Nothing that would gain 3 % or more.</p>\n";
    if (diagnosis.total.high > 1.0)
        out += fmt::format("<p>All of them together: {}.</p>\n", gain_html(diagnosis.total));
    if (diagnosis.health.empty() && diagnosis.dropped_events == 0) return out;
    out += "<h2>How far to believe it</h2>\n<ul>\n";
    for (const HealthNote& note : diagnosis.health)
        out += fmt::format("<li>{}: {}{}{}</li>\n", html_text(note.id), html_text(note.text),
                           note.advice.empty() ? "" : "; ", html_text(note.advice));
    if (diagnosis.dropped_events > 0)
        out += fmt::format("<li>{} events could not be read</li>\n", diagnosis.dropped_events);
    return out + "</ul>\n";
}

std::string legend_html(const Timeline& line) {
    std::string out = "<ul class=\"legend\">\n";
    auto add = [&](std::string_view colour, std::string_view name, bool is_striped) {
        out += fmt::format("<li><i{} style=\"--colour: var(--{})\"></i>{}</li>\n",
                           is_striped ? " class=\"striped\"" : "", colour, html_text(name));
    };
    add("compute", "kernel", false);
    add("communication", "communication", false);
    add("copy", "copy", false);
    add("op", "operator", false);
    add("call", "runtime call", false);
    add("range", "range", false);
    for (std::size_t i = 0; i < kCauses; ++i) {
        if (line.causes[i] <= 0) continue;
        add(fmt::format("c{}", i), fmt::format("idle: {}", cause_text(static_cast<Cause>(i))),
            i % 2 == 1);
    }
    return out + "</ul>\n";
}

std::string timeline_section(const Trace& trace) {
    Timeline line = make_timeline(trace);
    StepData step = typical_step(line);
    if (step.events == 0) return "<p>The trace holds nothing to draw.</p>\n";
    std::string out = fmt::format(
        "<h2>{}{}</h2>\n<p class=\"quiet\">{} events of {}{}. Drag to move, wheel "
        "or "
        "+ and - to zoom, 0 for all, g for the next gap, double click to fill the view.</p>\n",
        line.has_steps ? "One typical step: " : "Timeline: ", html_text(step.name), step.events,
        html_text(trace.file),
        step.left_out > 0
            ? fmt::format(" ({} more nested deeper, on minor threads or beyond the limit)",
                          step.left_out)
            : "");
    out += legend_html(line);
    out +=
        "<div class=\"buttons\">\n<button type=\"button\" data-key=\"+\">Zoom in</button>\n"
        "<button type=\"button\" data-key=\"-\">Zoom out</button>\n"
        "<button type=\"button\" data-key=\"ArrowLeft\">Left</button>\n"
        "<button type=\"button\" data-key=\"ArrowRight\">Right</button>\n"
        "<button type=\"button\" data-key=\"g\">Next gap</button>\n"
        "<button type=\"button\" data-key=\"0\">All</button>\n</div>\n"
        "<div id=\"timeline\">\n<canvas id=\"canvas\" tabindex=\"0\" role=\"application\" "
        "aria-label=\"Timeline of one step; arrow keys move, plus and minus zoom, g goes to the "
        "next gap\" aria-describedby=\"tip\"></canvas>\n"
        "<div id=\"tip\" role=\"status\" aria-live=\"polite\" hidden></div>\n</div>\n";
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
    if (traces.empty()) return nullptr;
    if (diagnosis.ranks && !diagnosis.ranks->late.empty()) {
        for (const Trace& trace : traces) {
            if (trace.rank == diagnosis.ranks->late.front()) return &trace;
        }
    }
    return &traces.front();
}

std::string diagnosis_page(const Diagnosis& diagnosis, const Trace* trace, const PageView& view) {
    std::string inputs;
    for (const std::string& input : diagnosis.inputs)
        inputs += fmt::format("{}{}", inputs.empty() ? "" : ", ", html_text(input));
    std::string out = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
        "'unsafe-inline'; style-src 'unsafe-inline'\">\n"
        "<title>{} - saturate diagnose</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n",
        inputs, embedded_timeline_style());
    out += fmt::format("<h1>{}</h1>\n<p class=\"quiet\">{}", html_text(diagnosis.verdict), inputs);
    if (!diagnosis.device.empty()) out += fmt::format(" on {}", html_text(diagnosis.device));
    if (diagnosis.window_ms > 0) out += fmt::format("; {:.1f} ms seen", diagnosis.window_ms);
    if (diagnosis.steps > 0) out += fmt::format(", {} steps", diagnosis.steps);
    out += "</p>\n";
    std::vector<Piece> pieces = pieces_of(diagnosis);
    if (!pieces.empty()) out += bar_html(pieces);
    out += findings_html(diagnosis, view);
    if (trace) out += timeline_section(*trace);
    return out + "</main>\n</body>\n</html>\n";
}

}  // namespace saturate
