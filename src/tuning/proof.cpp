// SPDX-License-Identifier: Apache-2.0
#include "tuning/proof.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "telemetry/statistics.h"

namespace saturate {

namespace {

// Quantiles of Student's t for a two-sided interval of 99 %, by degrees of freedom from 1. Wider
// than the usual 95 %: one wrong "faster" or "slower" in a hundred proofs of changes that do
// nothing, not one in twenty.
constexpr std::array<double, 30> kT99 = {63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355,
                                         3.250,  3.169, 3.106, 3.055, 3.012, 2.977, 2.947, 2.921,
                                         2.898,  2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797,
                                         2.787,  2.779, 2.771, 2.763, 2.756, 2.750};

// A smaller difference is not worth reporting, whatever its interval.
constexpr double kLeastDifference = 0.01;

}  // namespace

std::string_view verdict_name(Verdict verdict) {
    constexpr std::string_view kNames[] = {"faster", "slower", "no difference seen", "not proven"};
    return kNames[static_cast<int>(verdict)];
}

Measured measured(std::vector<double> values) {
    if (values.empty()) return {};
    auto [low, high] = std::ranges::minmax(values);
    return {median(values), low, high, static_cast<int>(values.size())};
}

void judge(Proof& proof) {
    std::vector<double> before, after, logs;
    for (auto [a, b] : proof.pairs) {
        SATURATE_CHECK(a > 0 && b > 0, "a rate is positive");
        before.push_back(a);
        after.push_back(b);
        logs.push_back(std::log(b / a));
    }
    proof.before = measured(before);
    proof.after = measured(after);
    proof.verdict = Verdict::not_proven;
    std::size_t n = logs.size();
    if (n == 0) return;
    double mean = 0, squares = 0;
    for (double value : logs) mean += value / static_cast<double>(n);
    for (double value : logs) squares += (value - mean) * (value - mean);
    proof.ratio = std::exp(mean);
    if (!proof.has_interval()) return;
    proof.verdict = Verdict::no_difference;
    double error = std::sqrt(squares / static_cast<double>(n - 1) / static_cast<double>(n));
    double half = kT99[std::min(n - 1, kT99.size()) - 1] * error;
    proof.interval_low = std::exp(mean - half);
    proof.interval_high = std::exp(mean + half);
    if (proof.interval_low > 1 && proof.ratio >= 1 + kLeastDifference)
        proof.verdict = Verdict::faster;
    if (proof.interval_high < 1 && proof.ratio <= 1 - kLeastDifference)
        proof.verdict = Verdict::slower;
}

Proof prove(const ProofSettings& settings, const std::function<std::optional<double>()>& before,
            const std::function<std::optional<double>()>& after,
            const std::function<bool()>& is_stopped) {
    Proof proof{.unit = settings.unit};
    for (int pair = 0; pair < settings.pairs_max; ++pair) {
        if (pair >= settings.pairs_min) {
            judge(proof);
            double enough = std::max(settings.width * proof.ratio,
                                     settings.width_of_gain * std::abs(proof.ratio - 1));
            if ((proof.interval_high - proof.interval_low) / 2 <= enough) break;
            if (settings.is_time_up && settings.is_time_up()) break;
        }
        bool before_first = pair % 2 == 0;
        std::optional<double> a, b;
        for (bool is_before : {before_first, !before_first}) {
            if (is_stopped && is_stopped()) break;
            (is_before ? a : b) = is_before ? before() : after();
        }
        if (!a || !b || *a <= 0 || *b <= 0) {
            proof.complete = false;
            break;
        }
        proof.pairs.emplace_back(*a, *b);
    }
    judge(proof);
    return proof;
}

Json to_json(const Proof& proof) {
    auto side = [](const Measured& m) {
        return Json::object({{"median", m.median}, {"low", m.low}, {"high", m.high}, {"n", m.n}});
    };
    Json interval;
    if (proof.has_interval()) {
        interval = Json::array();
        interval.add(proof.interval_low);
        interval.add(proof.interval_high);
    }
    Json pairs = Json::array();
    for (auto [a, b] : proof.pairs) {
        Json pair = Json::array();
        pair.add(a);
        pair.add(b);
        pairs.add(pair);
    }
    return Json::object({{"before", side(proof.before)},
                         {"after", side(proof.after)},
                         {"unit", proof.unit},
                         {"ratio", proof.ratio},
                         {"interval", interval},
                         {"interval_percent", 99},
                         {"verdict", std::string(verdict_name(proof.verdict))},
                         {"loss_guard", proof.loss_guard},
                         {"complete", proof.complete},
                         {"longer_budget", proof.longer.empty() ? Json() : Json(proof.longer)},
                         {"pairs", pairs}});
}

}  // namespace saturate
