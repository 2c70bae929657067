// SPDX-License-Identifier: Apache-2.0
#include "report/search_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/figures.h"
#include "report/tuning_text.h"

namespace saturate {

SvgScale svg_scale(double low, double high, double at, double length) {
    double room = high > low ? 0.08 * (high - low) : std::max(0.05 * std::abs(low), 1e-9);
    return {low - room, high + room, at, length};
}

std::string svg_picture(double height, const std::string& label, const std::string& inside) {
    return fmt::format(
        "<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" aria-label=\"{2}\" "
        "style=\"width:100%;max-width:{0:.0f}px;font-size:12px\">{3}</svg>\n",
        kSvgWidth, height, label, inside);
}

std::string svg_words(double x, double y, const char* anchor, const std::string& text) {
    return fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"currentColor\">{}</text>", x, y,
        anchor, text);
}

namespace {

// Draws each pair of runs as two dots with a line between them.
std::string proof_svg(const Proof& proof, const PageWords& say) {
    double low = std::min(proof.before.low, proof.after.low);
    double high = std::max(proof.before.high, proof.after.high);
    double height = 46 + 18 * static_cast<double>(proof.pairs.size());
    SvgScale x = svg_scale(low, high, kSvgLeft, kSvgWidth - kSvgLeft - kSvgRight);
    std::string out;
    for (std::size_t i = 0; i < proof.pairs.size(); ++i) {
        auto [a, b] = proof.pairs[i];
        double y = 14 + 18 * static_cast<double>(i);
        out += svg_words(kSvgLeft - 8, y + 4, "end", say(fmt::format("pair {}", i + 1)));
        out += fmt::format(
            "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" "
            "stroke=\"var(--line)\"/>",
            x(a), x(b), y, y);
        out += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"none\" stroke=\"var(--r0)\" "
            "stroke-width=\"2\"/><circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" "
            "fill=\"var(--r1)\"/>",
            x(a), y, x(b), y);
    }
    double axis = height - 26;
    out += fmt::format(
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"var(--quiet)\"/>",
        kSvgLeft, kSvgWidth - kSvgRight, axis, axis);
    for (double value : {low, high})
        out += svg_words(x(value), axis + 16, "middle", rate_text(value));
    return svg_picture(height, say("rates of each pair of runs, before and after"), out) +
           fmt::format(
               "<ul class=\"legend\"><li><i style=\"border:2px solid var(--r0);"
               "border-radius:50%\"></i>{}</li><li><i style=\"background:var(--r1);"
               "border-radius:50%\"></i>{}</li><li class=\"quiet\">{}</li></ul>\n",
               say("before"), say("after"), say(proof.unit));
}

}  // namespace

std::string proof_html(const Proof& proof, const PageWords& say) {
    if (proof.pairs.empty()) return "";
    return fmt::format("<h2>{}</h2>\n{}<pre>{}</pre>\n", say("The proof"), proof_svg(proof, say),
                       say(proof_text(proof)));
}

std::string proof_headline(const Proof& proof) {
    if (proof.verdict == Verdict::faster)
        return fmt::format("{:.2f} times as fast, proven in {} pairs of runs", proof.ratio,
                           proof.pairs.size());
    if (proof.verdict != Verdict::not_proven) return std::string(verdict_name(proof.verdict));
    return proof.longer.empty() ? std::string("not proven")
                                : fmt::format("not proven, run longer: --budget {}", proof.longer);
}

}  // namespace saturate
