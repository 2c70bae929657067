// SPDX-License-Identifier: Apache-2.0
// Parts that the pages of searches (fix_html, tune_html) share: small SVG charts and the proof.
#pragma once

#include <string>

#include "report/page_words.h"
#include "tuning/proof.h"

namespace saturate {

constexpr double kSvgWidth = 640, kSvgLeft = 56, kSvgRight = 12;

struct SvgScale {
    double from = 0, to = 1, at = 0, length = 1;
    [[nodiscard]] double operator()(double value) const {
        return at + (to > from ? (value - from) / (to - from) : 0.5) * length;
    }
};

// Returns the scale of a range with a small margin on both sides.
[[nodiscard]] SvgScale svg_scale(double low, double high, double at, double length);

// Label and text must already be escaped.
[[nodiscard]] std::string svg_picture(double height, const std::string& label,
                                      const std::string& inside);
[[nodiscard]] std::string svg_words(double x, double y, const char* anchor,
                                    const std::string& text);

// Returns heading, chart and text of a proof, or "" if it has no pair of runs.
[[nodiscard]] std::string proof_html(const Proof& proof, const PageWords& say);

// Returns "1.62 times as fast, proven in 7 pairs of runs" or
// "not proven, run longer: --budget 12m".
[[nodiscard]] std::string proof_headline(const Proof& proof);

}  // namespace saturate
